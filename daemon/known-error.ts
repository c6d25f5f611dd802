import { DoorwardError } from '../shared/errors.ts'

/**
 * An error of ours as it is; any other thrown value becomes `internal` without a word of it, since
 * foreign errors can hold tokens.
 */
export const knownError = (error: unknown): DoorwardError =>
  error instanceof DoorwardError
    ? error
    : new DoorwardError('internal', 'something went wrong inside the daemon', {
        hint: 'doorward daemon logs',
      })
