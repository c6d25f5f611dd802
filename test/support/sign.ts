import { createHmac } from 'node:crypto'

/** The headers GitHub sends with a body it signed (docs: "Validating webhook deliveries"). */
export const githubHeaders = (
  body: string | Buffer,
  secret: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  'content-type': 'application/json',
  'x-github-event': 'pull_request',
  'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  ...more,
})
