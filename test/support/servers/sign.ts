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

const ownMembers: Readonly<Record<string, object>> = {
  issue_comment: { issue: {}, comment: {} },
  issues: { issue: {} },
  pull_request: { pull_request: {} },
  push: { ref: 'refs/heads/main', commits: [] },
}

/** A body of this event of GitHub, with the members that tell it from other events. */
export const githubBody = (event: string, payload: object): string =>
  JSON.stringify({ ...payload, ...ownMembers[event] })
