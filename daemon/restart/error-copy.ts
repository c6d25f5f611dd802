import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import { knownError } from '../util/assets.ts'

/** An error as it travels between processes. */
export type ErrorCopy = {
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string | undefined
  readonly localDetail?: string | undefined
}

/** Copies an error of ours; of any other only that it was one, as it may hold a secret. */
export const copyError = (error: unknown): ErrorCopy => {
  const { code, message, hint, localDetail } = knownError(error)
  return { code, message, hint, localDetail }
}

export const toError = ({ code, message, hint, localDetail }: ErrorCopy): DoorwardError =>
  new DoorwardError(code, message, { hint, ...(localDetail === undefined ? {} : { localDetail }) })
