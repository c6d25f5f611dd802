import type { SignatureHeaders } from './verify.ts'

/**
 * True for the ping that GitHub sends once when a webhook is made (docs: "Webhook events and payloads",
 * ping). It is verified like any delivery, and wakes no agent.
 */
export const isPing = (headers: SignatureHeaders): boolean => {
  const [event, second] = headers['x-github-event'] ?? []
  return event === 'ping' && second === undefined
}
