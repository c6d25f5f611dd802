import type { SignatureScheme } from '../../shared/signature-schemes.ts'
import { type Payload, isForm } from './parse.ts'
import type { SignatureHeaders } from './read-signature.ts'
import { valueAt } from '../value-at.ts'

/** A verified request that asks whether the webhook works, and wakes no agent. */
export type Handshake = {
  readonly status: 'ping' | 'challenge'
  readonly detail: string
  /** The body of a 200 as plain text, where the sender wants one. */
  readonly text?: string
}

/**
 * Reads the handshake of a sender, undefined for a delivery. GitHub's `ping` (docs: "Webhook events and
 * payloads"); Slack's `url_verification`, answered with its challenge (docs: "url_verification"), and
 * its `ssl_check` of a slash command.
 */
export const handshakeOf = (
  { name }: SignatureScheme,
  headers: SignatureHeaders,
  payload: Payload,
): Handshake | undefined => {
  if (name === 'slack') return slackHandshake(payload)
  const [event, second] = headers['x-github-event'] ?? []
  if ((name !== 'github' && name !== 'hmac') || event !== 'ping' || second !== undefined)
    return undefined
  return { status: 'ping', detail: 'the webhook is set up and its secret fits' }
}

const maxChallenge = 4096

const slackHandshake = (payload: Payload): Handshake | undefined => {
  const challenge = valueAt(payload, ['challenge'])
  if (valueAt(payload, ['type']) === 'url_verification' && typeof challenge === 'string')
    return {
      status: 'challenge',
      detail: 'Slack asked for its challenge: the webhook is set up and its secret fits',
      text: challenge.slice(0, maxChallenge),
    }
  if (valueAt(payload, ['ssl_check']) === '1')
    return { status: 'challenge', detail: 'Slack checked the certificate', text: '' }
  return undefined
}

/**
 * True for what Slack wants a plain 200 for, and would show the person an error else: slash commands
 * and the buttons and forms of messages (docs: "Implementing slash commands", "Handling user
 * interaction"). A body would be shown to the person, so there is none.
 */
export const wantsEmptyAnswer = (
  { name }: SignatureScheme,
  contentType: string | undefined,
): boolean => name === 'slack' && isForm(contentType)
