import { DeliveryError, TokenRefused } from '../delivery-error.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'
import { failureOfAnswer, requestTarget, type TargetAnswer } from '../request.ts'
import type { OwnMessages } from '../loop-guard.ts'
import type { Sender } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'

const slack = 'slack'

/** Messages of Slack by chat.postMessage (docs.slack.dev/reference/methods/chat.postMessage). */
export const createSlack = (
  apiUrl: string | undefined,
  token: TokenSource,
  messages: Pick<OwnMessages, 'post' | 'remember'>,
): Sender => ({
  knowsRepeats: false,
  send: async ({ address, text }, attempt) => {
    const post = async (accessToken: string): Promise<undefined> => {
      const answer = await requestTarget(
        new URL(`${apiUrl ?? 'https://slack.com/api'}/chat.postMessage`),
        {
          target: slack,
          headers: {
            authorization: `Bearer ${accessToken}`,
            'content-type': 'application/json; charset=utf-8',
          },
          body: JSON.stringify({
            channel: toChannel(address),
            markdown_text: text,
            // Slack would call at every address that an agent, or who steers it, writes.
            unfurl_links: false,
            unfurl_media: false,
          }),
          attempt,
        },
      )
      const failure = toFailure(answer, address)
      if (failure) throw failure
      messages.remember(answer.json)
      return undefined
    }
    return withToken(token, async (accessToken) => messages.post(async () => post(accessToken)))
  },
})

/** `@U…` is a user by id, which Slack takes without the sign. */
const toChannel = (address: string): string =>
  /^@[UW][A-Z0-9]{2,}$/.test(address) ? address.slice(1) : address

/** What a person can do about an error of Slack, by its name. */
const hints: Readonly<Record<string, string>> = {
  not_in_channel: 'invite the app to the channel: /invite @<the app>',
  channel_not_found: 'check its name; to a private channel the app has to be invited',
  is_archived: 'the channel is archived: name another one',
  missing_scope: 'the token lacks the scope chat:write: doorward oauth login slack',
  no_permission: 'the token lacks the scope chat:write: doorward oauth login slack',
  not_allowed_token_type: 'use a token of a bot or a user',
  restricted_action: 'a setting of the workspace keeps this account from posting there',
  restricted_action_read_only_channel: 'the channel takes no messages from this account',
  cannot_dm_bot: 'name a person or a channel',
  user_not_found: 'write the id of the user: slack:U…',
  msg_too_long: 'Slack takes no message of this length: ask the agent for a shorter answer',
  msg_blocks_too_long: 'Slack takes no message of this length: ask the agent for a shorter answer',
  messages_tab_disabled: 'allow messages in the settings of the app (App Home)',
}

const tokenErrors = new Set([
  'invalid_auth',
  'not_authed',
  'token_expired',
  'token_revoked',
  'account_inactive',
])

const passing = new Set(['ratelimited', 'rate_limited', 'service_unavailable', 'request_timeout'])

/** "It's possible some aspect of the operation succeeded before the error was raised". */
const halfDone = new Set(['internal_error', 'fatal_error'])

const toFailure = (answer: TargetAnswer, address: string): Error | undefined => {
  const { json, status, headers } = answer
  const error = typeof json['error'] === 'string' ? json['error'] : ''
  const name = /^[a-z_]{1,64}$/.test(error) ? error : 'an error without a name'
  if (tokenErrors.has(error)) return new TokenRefused()
  if (passing.has(error) && status < 300) {
    const retryAfterMs = retryAfterIn(headers['retry-after'])
    return new DeliveryError('later', `slack answered ${name}`, { retryAfterMs })
  }
  if (halfDone.has(error)) return new DeliveryError('unknown', `slack answered ${name}`)
  const refused = failureOfAnswer(slack, answer)
  if (refused) return status === 401 ? new TokenRefused() : refused
  if (json['ok'] === true) return undefined
  if (json['ok'] !== false)
    return new DeliveryError('unknown', 'slack gave an answer that is none of Slack')
  const hint =
    error === 'channel_not_found' && address.startsWith('@')
      ? 'write the id of the user (its profile shows it): slack:U…'
      : hints[error]
  return new DeliveryError('refused', `slack answered ${name}`, { hint })
}
