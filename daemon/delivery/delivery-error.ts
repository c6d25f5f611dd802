import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'

/**
 * What a failed try means for another one. `refused`: another would end the same. `later`: it may go
 * through after a while. `unknown`: it was on its way, and there is no answer.
 */
export type Fate = 'refused' | 'later' | 'unknown'

/** One try to bring something to a target has failed. The message names neither address nor token. */
export class DeliveryError extends DoorwardError {
  readonly fate: Fate
  /** It may be there all the same: no answer says so of it, nor does one of a server that is in trouble. */
  readonly mayHaveArrived: boolean

  constructor(
    fate: Fate,
    message: string,
    details: {
      readonly code?: ErrorCode
      readonly hint?: string | undefined
      readonly retryAfterMs?: number | undefined
      readonly cause?: unknown
      /** Default: true for `unknown`. */
      readonly mayHaveArrived?: boolean
    } = {},
  ) {
    super(details.code ?? 'delivery-failed', message, details)
    this.fate = fate
    this.mayHaveArrived = details.mayHaveArrived ?? fate === 'unknown'
  }
}

/** The target does not take this token. */
export class TokenRefused extends Error {
  constructor() {
    super('the token was refused')
  }
}

/** For a request that only looks what is there: nothing has been sent by it, and it can be tried again. */
export const lookingOnly = async <Value>(answer: Promise<Value>): Promise<Value> => {
  try {
    return await answer
  } catch (error) {
    if (error instanceof DeliveryError && error.mayHaveArrived)
      throw new DeliveryError('later', error.message, { retryAfterMs: error.retryAfterMs })
    throw error
  }
}
