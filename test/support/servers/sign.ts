import { createHmac, randomUUID } from 'node:crypto'

/** The headers GitHub sends with a body it signed (docs: "Validating webhook deliveries"). */
export const githubHeaders = (
  body: string | Buffer,
  secret: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  'content-type': 'application/json',
  'x-github-event': 'pull_request',
  'x-github-delivery': randomUUID(),
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  ...more,
})
