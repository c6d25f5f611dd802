import { isAddress } from '../../../shared/targets/schema.ts'
import { textAt } from '../../util/payload-path.ts'
import { asReadOnly, DeliveryError, TokenRefused } from '../delivery-error.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../request.ts'
import type { OwnMessages } from '../loop-guard.ts'
import { type Attempt, type Message, type Sender, type Sent, toMade } from '../sender.ts'
import { needsOf, type TokenSource, withToken } from '../token.ts'
import {
  notEditable,
  type PostedMessages,
  replaceEarlier,
  toReplacedDigest,
} from './slack-posted.ts'
import { isResponseUrl, parseResponseUrl, toResponse } from './slack-reply.ts'

const slack = 'slack'

/**
 * Messages to Slack by chat.postMessage (docs.slack.dev/reference/methods/chat.postMessage), or to the
 * `response_url` of a command.
 */
export const createSlack = (
  apiUrl = 'https://slack.com/api',
  token: TokenSource,
  messages: OwnMessages,
  posted: PostedMessages,
): Sender => ({
  isIdempotent: false,
  send: async (message, attempt) => {
    const { address, text, part } = message
    if (isResponseUrl(address)) return respond(parseResponseUrl(address, apiUrl), text, attempt)
    return withToken(token, async (accessToken) => {
      const call = createCall(apiUrl, accessToken, attempt)
      const post = async () => postMessage(message, call, messages)
      const digest = toReplacedDigest(message)
      const { response, note } =
        digest === undefined
          ? { response: await post() }
          : await replaceEarlier({
              ...message,
              digest,
              posted,
              post,
              edit: async (old) => editMessage(old, text, call, messages),
              remove: async (old) => call('chat.delete', old, address),
            })
      const made = part > 1 ? undefined : await findPage(response, apiUrl, accessToken, attempt)
      return { note, made }
    })
  },
  needs: needsOf(token, ['chat:write']),
  // docs.slack.dev/reference/methods/auth.test
  check: async (_, asking) =>
    withToken(token, async (accessToken) => {
      const response = await requestTarget(new URL(`${apiUrl}/auth.test`), {
        target: slack,
        method: 'POST',
        token: accessToken,
        attempt: asking,
      })
      const failure = toSlackFailure(response, '')
      if (failure) throw failure
      const scopes = response.headers['x-oauth-scopes']
      if (typeof scopes === 'string' && !/\bchat:write\b/.test(scopes))
        throw new DeliveryError('permanent', 'the token lacks the scope chat:write', {
          hint: hints['missing_scope'],
        })
      return response
    }),
})

/** Calls a method of the Web API. `accepts` lists errors that are no failure here. Throws `DeliveryError`. */
type Call = (
  method: string,
  json: object,
  address: string,
  accepts?: readonly string[],
) => Promise<TargetResponse>

const createCall =
  (apiUrl: string, token: string, attempt: Attempt): Call =>
  async (method, json, address, accepts = []) => {
    const url = new URL(`${apiUrl}/${method}`)
    const response = await requestTarget(url, { target: slack, token, json, attempt })
    if (accepts.includes(textAt(response.json, 'error') ?? '')) return response
    const failure = toSlackFailure(response, address)
    if (failure) throw failure
    return response
  }

const postMessage = async (
  { address, text }: Pick<Message, 'address' | 'text'>,
  call: Call,
  messages: OwnMessages,
): Promise<TargetResponse> => {
  const [channel = '', thread] = address.split('/')
  const json = {
    channel: toChannel(channel),
    ...(thread !== undefined && { thread_ts: thread }),
    markdown_text: text,
    // Otherwise Slack requests every URL that an agent, or its attacker, writes.
    unfurl_links: false,
    unfurl_media: false,
  }
  return messages.post(async () => {
    const response = await call('chat.postMessage', json, address)
    messages.remember(response.json)
    return response
  })
}

/** A repeated edit changes nothing, so it may be tried again where it may have arrived. */
const editMessage = async (
  message: { readonly channel: string; readonly ts: string },
  text: string,
  call: Call,
  messages: OwnMessages,
): Promise<TargetResponse> => {
  // Slack tells the app of the edit, perhaps before it answers.
  messages.remember(message)
  const json = { ...message, markdown_text: text }
  return asReadOnly(call('chat.update', json, message.channel, notEditable))
}

const permalinkMs = 3000

/** The page of a message (docs.slack.dev/reference/methods/chat.getPermalink). The message is there without it too. */
const findPage = async (
  { json }: TargetResponse,
  apiUrl: string,
  token: string,
  { signal, timeoutMs }: Attempt,
): Promise<Sent['made']> => {
  const { channel, ts } = json
  if (typeof channel !== 'string' || typeof ts !== 'string') return undefined
  if (!isAddress(slack, `${channel}/${ts}`)) return undefined
  const query = new URLSearchParams({ channel, message_ts: ts })
  const asking = { signal, timeoutMs: Math.min(timeoutMs, permalinkMs) }
  try {
    const url = new URL(`${apiUrl}/chat.getPermalink?${query.toString()}`)
    const response = await requestTarget(url, { target: slack, token, attempt: asking })
    return toMade('message', textAt(response.json, 'permalink'), apiUrl, true)
  } catch {
    return undefined
  }
}

/** Answers a command (docs.slack.dev/interactivity/handling-user-interaction, "Message responses"). */
const respond = async (
  url: URL | undefined,
  text: string,
  attempt: Attempt,
): Promise<undefined> => {
  if (!url)
    throw new DeliveryError('permanent', 'the response_url of this event is not at Slack', {
      code: 'target-invalid',
      hint: 'only hooks.slack.com, or the server in targets.slack.api_url, is answered',
    })
  const response = await requestTarget(url, {
    target: slack,
    json: toResponse(text),
    attempt,
  })
  const { json, status } = response
  const hint = status === 404 ? responseIsOver : undefined
  const error = typeof json['error'] === 'string' ? json['error'] : ''
  const failure =
    status < 429 && /^[a-z_]{1,64}$/.test(error)
      ? new DeliveryError('permanent', `slack answered ${error}`, { hint })
      : toStatusError(slack, response, { hint })
  if (failure) throw failure
  return undefined
}

const responseIsOver = 'Slack takes answers to a command for 30 minutes, and five at most'

/** `@U…` is a user by id, which Slack expects without the sign. */
export const toChannel = (address: string): string =>
  /^@[UW][A-Z0-9]{2,}$/.test(address) ? address.slice(1) : address

const hints: Readonly<Record<string, string>> = {
  not_in_channel: 'invite the app to the channel: /invite @<the app>',
  channel_not_found: 'check its name; the app must be invited to a private channel',
  invalid_thread_ts: 'there is no such message in the channel',
  thread_not_found: 'there is no such message in the channel',
  is_archived: 'the channel is archived: name another one',
  missing_scope: 'the token lacks the scope chat:write: doorward oauth login slack',
  no_permission: 'the token lacks the scope chat:write: doorward oauth login slack',
  not_allowed_token_type: 'use a token of a bot or a user',
  restricted_action: 'the workspace settings do not allow this account to post there',
  restricted_action_read_only_channel: 'the channel is read-only for this account',
  cannot_dm_bot: 'name a person or a channel',
  user_not_found: 'use the id of the user: slack:U…',
  msg_too_long: 'the message is too long: ask the agent for a shorter answer',
  msg_blocks_too_long: 'the message is too long: ask the agent for a shorter answer',
  messages_tab_disabled: 'allow messages in the app settings (App Home)',
}

const tokenErrors = new Set([
  'invalid_auth',
  'not_authed',
  'token_expired',
  'token_revoked',
  'account_inactive',
])

const transientErrors = new Set([
  'ratelimited',
  'rate_limited',
  'service_unavailable',
  'request_timeout',
])

/** "It's possible some aspect of the operation succeeded before the error was raised". */
const ambiguousErrors = new Set(['internal_error', 'fatal_error'])

/** Slack answers 200 to what it refuses. */
export const toSlackFailure = (response: TargetResponse, address: string): Error | undefined => {
  const { json, status, headers } = response
  const error = typeof json['error'] === 'string' ? json['error'] : ''
  const name = /^[a-z_]{1,64}$/.test(error) ? error : 'an error without a name'
  if (tokenErrors.has(error)) return new TokenRefused()
  if (transientErrors.has(error) && status < 300) {
    const retryAfterMs = retryAfterIn(headers['retry-after'])
    return new DeliveryError('retryable', `slack answered ${name}`, { retryAfterMs })
  }
  if (ambiguousErrors.has(error))
    return new DeliveryError('indeterminate', `slack answered ${name}`)
  const failure = toStatusError(slack, response)
  if (failure) return status === 401 ? new TokenRefused() : failure
  if (json['ok'] === true) return undefined
  if (json['ok'] !== false)
    return new DeliveryError('indeterminate', 'the response is not from Slack')
  const hint =
    error === 'channel_not_found' && address.startsWith('@')
      ? 'use the id of the user, which the profile shows: slack:U…'
      : hints[error]
  return new DeliveryError('permanent', `slack answered ${name}`, { hint })
}
