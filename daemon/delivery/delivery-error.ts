import { type About, DoorwardError, type ErrorCode } from '../../shared/errors.ts'

/**
 * Whether another attempt makes sense. `permanent`: it would fail again. `retryable`: it may succeed later.
 * `indeterminate`: the message was sent, but there is no response.
 */
export type Retryability = 'permanent' | 'retryable' | 'indeterminate'

/** One attempt at a target failed. The message names neither address nor token. */
export class DeliveryError extends DoorwardError {
  readonly retryability: Retryability
  /** True without a response, and after one of a server in trouble. */
  readonly mayHaveArrived: boolean

  constructor(
    retryability: Retryability,
    message: string,
    details: {
      readonly code?: ErrorCode
      readonly hint?: string | undefined
      readonly about?: About | undefined
      readonly retryAfterMs?: number | undefined
      readonly cause?: unknown
      /** Default: true for `indeterminate`. */
      readonly mayHaveArrived?: boolean
    } = {},
  ) {
    super(details.code ?? 'delivery-failed', message, details)
    this.retryability = retryability
    this.mayHaveArrived = details.mayHaveArrived ?? retryability === 'indeterminate'
  }
}

/** The target refuses this token. */
export class TokenRefused extends Error {
  constructor() {
    super('the token was refused')
  }
}

/** For a request that only reads: it sends nothing, so it can always be repeated. */
export const asReadOnly = async <Value>(response: Promise<Value>): Promise<Value> => {
  try {
    return await response
  } catch (error) {
    if (error instanceof DeliveryError && error.mayHaveArrived)
      throw new DeliveryError('retryable', error.message, { retryAfterMs: error.retryAfterMs })
    throw error
  }
}
