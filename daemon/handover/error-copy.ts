import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import { knownError } from '../known-error.ts'

/** An error as it travels. */
export type ErrorCopy = {
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string | undefined
  readonly localDetail?: string | undefined
}

/** What may be told of any thrown value; of a foreign error no more than that it is one. */
export const copyOfError = (thrown: unknown): ErrorCopy => {
  const { code, message, hint, localDetail } = knownError(thrown)
  return { code, message, hint, localDetail }
}

export const errorFrom = ({ code, message, hint, localDetail }: ErrorCopy): DoorwardError =>
  new DoorwardError(code, message, {
    hint,
    ...(localDetail === undefined ? {} : { localDetail }),
  })
