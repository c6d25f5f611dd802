import { DoorwardError } from '../shared/errors.ts'

/** True for what a daemon of an earlier version answers to a question that it does not know. */
export const isUnknownRoute = (error: unknown): boolean =>
  error instanceof DoorwardError && ['not-found', 'method-not-allowed'].includes(error.code)
