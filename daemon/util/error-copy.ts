import { type About, DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import { knownError } from './assets.ts'

/** An error as it travels between processes and machines. */
export type ErrorCopy = {
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string | undefined
  readonly about?: About | undefined
  readonly localDetail?: string | undefined
}

/** Copies an error of ours; a foreign error may contain a secret and becomes `internal`. */
export const copyError = (error: unknown): ErrorCopy => {
  const { code, message, hint, about, localDetail } = knownError(error)
  return { code, message, hint, about, localDetail }
}

export const toError = ({ code, message, hint, about, localDetail }: ErrorCopy): DoorwardError =>
  new DoorwardError(code, message, {
    hint,
    about,
    ...(localDetail === undefined ? {} : { localDetail }),
  })
