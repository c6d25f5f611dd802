import type { SignatureScheme } from '../../shared/signature-schemes.ts'
import type { Payload } from './parse.ts'
import { invalid } from './read-signature.ts'

/**
 * The last part of verification for a sender that puts the signed time into the body (Linear). Throws
 * `signature-invalid` when it is missing, no number of milliseconds, or too far from now either way.
 */
export const checkBodyTimestamp = (
  payload: Payload,
  { bodyTimestamp, toleranceSeconds = 0 }: SignatureScheme,
  nowMs: number,
): void => {
  if (bodyTimestamp === undefined) return
  const timestamp =
    typeof payload === 'object' && payload !== null && Object.hasOwn(payload, bodyTimestamp)
      ? (payload as Readonly<Record<string, unknown>>)[bodyTimestamp]
      : undefined
  if (typeof timestamp !== 'number' || !Number.isFinite(timestamp))
    throw invalid(`the body has no ${bodyTimestamp} in milliseconds`)
  const ageMs = nowMs - timestamp
  if (Math.abs(ageMs) > toleranceSeconds * 1000)
    throw invalid(
      `${bodyTimestamp} is ${Math.ceil(Math.abs(ageMs) / 1000)} s in the ${ageMs < 0 ? 'future' : 'past'}, ${toleranceSeconds} s are taken; the signature fits: an old delivery came again, or a clock is wrong`,
    )
}
