import type { Gateway } from '../../../shared/config/schema.ts'
import { DeliveryError } from '../../delivery/delivery-error.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../../delivery/request.ts'
import type { Asking } from '../../delivery/sender.ts'
import { createGithubApi } from '../../delivery/targets/github/github-api.ts'
import { toTelegramUrl } from '../../delivery/targets/telegram.ts'
import { withToken } from '../../delivery/token.ts'
import type { Tokens } from '../../oauth/dependencies.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import { findApi } from '../../workspace/context/github.ts'
import type { SeenRequest } from './request.ts'

/** Marks a message with eyes; returns what takes them away again. Throws `DeliveryError`, or why there is no token. */
export type Acknowledge = (
  seen: SeenRequest,
  asking: Asking,
) => Promise<(asking: Asking) => Promise<void>>

type Of<Kind extends SeenRequest['kind']> = Extract<SeenRequest, { kind: Kind }>

export const createAcknowledge = (
  gateway: Gateway,
  env: NodeJS.ProcessEnv,
  access: Tokens['access'],
): Acknowledge => {
  const { slack, telegram } = gateway.targets

  /** docs.github.com/rest/reactions/reactions */
  const atGithub = async ({ repository, of, login }: Of<'github'>, attempt: Asking) => {
    const { name, apiUrl, provider, tokenEnv } = findApi(
      { repo: repository, fixed: 'nothing', login },
      gateway,
    )
    const api = createGithubApi(apiUrl, { target: 'github', tokenEnv, provider, env, access })
    const grant = {
      repository: name,
      permissions: { issues: 'write', pull_requests: 'write' },
    } as const
    const path = `/repos/${name}/${of}/reactions`
    // Where they are there already GitHub answers with them.
    const { json } = await api({ attempt, grant }, async (request) =>
      request(path, { body: { content: 'eyes' } }),
    )
    const id = valueAt(json, ['id'])
    return async (later: Asking) => {
      if (!Number.isSafeInteger(id)) return
      await api({ attempt: later, grant }, async (request) =>
        request(`${path}/${String(id)}`, { method: 'DELETE', handles: [404] }),
      )
    }
  }

  /** docs.slack.dev/reference/methods/reactions.add */
  const atSlack = async ({ channel, ts }: Of<'slack'>, attempt: Asking) => {
    const { api_url: apiUrl = 'https://slack.com/api', token_env: tokenEnv, login } = slack
    const token = { target: 'slack', tokenEnv, provider: login ?? 'slack', env, access }
    const call = async (method: 'add' | 'remove', asking: Asking) =>
      withToken(token, async (accessToken) => {
        const response = await requestTarget(new URL(`${apiUrl}/reactions.${method}`), {
          target: 'slack',
          token: accessToken,
          json: { channel, timestamp: ts, name: 'eyes' },
          attempt: asking,
        })
        const failure = toStatusError('slack', response)
        if (failure) throw failure
        requireDone(response)
      })
    await call('add', attempt)
    return async (later: Asking) => call('remove', later)
  }

  /** core.telegram.org/bots/api#setmessagereaction */
  const atTelegram = async ({ chat, message }: Of<'telegram'>, attempt: Asking) => {
    const { api_url: apiUrl = 'https://api.telegram.org', token_env: tokenEnv } = telegram
    const token = { target: 'telegram', tokenEnv, provider: undefined, env, access }
    const set = async (reaction: readonly object[], asking: Asking) =>
      withToken(token, async (botToken) => {
        const response = await requestTarget(
          toTelegramUrl(apiUrl, botToken, 'setMessageReaction'),
          {
            target: 'telegram',
            json: { chat_id: chat, message_id: message, reaction },
            attempt: asking,
          },
        )
        const failure = toStatusError('telegram', response)
        if (failure) throw failure
      })
    await set([{ type: 'emoji', emoji: '👀' }], attempt)
    return async (later: Asking) => set([], later)
  }

  return async (seen, asking) => {
    switch (seen.kind) {
      case 'github':
        return atGithub(seen, asking)
      case 'slack':
        return atSlack(seen, asking)
      case 'telegram':
        return atTelegram(seen, asking)
    }
  }
}

/** Slack answers 200 to what it refuses. A reaction that is there, or not there, is no fault. */
const requireDone = ({ json }: TargetResponse): void => {
  const error = textAt(json, 'error') ?? 'unknown_error'
  if (json['ok'] === true || isThere.test(error)) return
  const said = /^[a-z_]{1,64}$/.test(error) ? error : 'with an error'
  throw new DeliveryError('permanent', `slack answered ${said}`, {
    hint: error === 'missing_scope' ? 'give the app the scope reactions:write' : undefined,
  })
}

const isThere = /^(?:already_reacted|no_reaction)$/
