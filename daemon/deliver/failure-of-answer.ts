import { retryAfterIn } from '../retry-after.ts'
import { DeliveryFailed } from './delivery-failed.ts'
import type { TargetAnswer } from './request.ts'

/** What else is known of an answer: what helps, and when the target wants to be asked again. */
type Said = { readonly hint?: string | undefined; readonly retryAfterMs?: number | undefined }

/**
 * What the status of an answer says, where the target's own words say no more: 429 and 5xx are worth
 * another try, everything else but 2xx is not. What was answered 5xx may have arrived: a proxy says so
 * too when what stands behind it has done the work and died, or was too slow to tell.
 */
export const failureOfAnswer = (
  target: string,
  { status, headers }: TargetAnswer,
  { hint, retryAfterMs = retryAfterIn(headers['retry-after']) }: Said = {},
): DeliveryFailed | undefined => {
  if (status >= 200 && status < 300) return undefined
  if (status === 429)
    return new DeliveryFailed('later', `${target} takes no more for now (429)`, { retryAfterMs })
  if (status >= 500)
    return new DeliveryFailed('later', `${target} answered ${status}`, {
      retryAfterMs,
      mayHaveArrived: true,
    })
  const what = status >= 300 && status < 400 ? ' with a redirect, which is not followed' : ''
  return new DeliveryFailed('refused', `${target} answered ${status}${what}`, { hint })
}

/** Seconds in a JSON answer, as milliseconds. */
export const secondsIn = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value * 1000 : undefined
