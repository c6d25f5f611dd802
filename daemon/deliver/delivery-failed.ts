import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'

/**
 * What a failed try means for another one. `refused`: another would end the same. `later`: nothing has
 * arrived, and it may go through after a while. `unknown`: it was on its way, and may have arrived.
 */
export type Fate = 'refused' | 'later' | 'unknown'

/** One try to bring something to a target has failed. The message names neither address nor token. */
export class DeliveryFailed extends DoorwardError {
  readonly fate: Fate

  constructor(
    fate: Fate,
    message: string,
    details: {
      readonly code?: ErrorCode
      readonly hint?: string | undefined
      readonly retryAfterMs?: number | undefined
      readonly cause?: unknown
    } = {},
  ) {
    super(details.code ?? 'delivery-failed', message, details)
    this.fate = fate
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
    if (error instanceof DeliveryFailed && error.fate === 'unknown')
      throw new DeliveryFailed('later', error.message)
    throw error
  }
}
