import { createHmac } from 'node:crypto'
import type { Webhook } from '../shared/webhook-definition.ts'

/** The header that the sender of this webhook would put on these bytes. */
export const signPayload = (
  { header, algorithm, prefix }: Webhook['signature'],
  secret: string,
  body: Buffer,
): Record<string, string> => ({
  [header]: prefix + createHmac(algorithm, secret).update(body).digest('hex'),
})
