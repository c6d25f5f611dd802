import type { TargetSettings } from '../../../shared/config/schema.ts'
import { parseSecretUrl } from '../../../shared/targets/secrets.ts'
import { DeliveryError } from '../delivery-error.ts'
import { toStatusError, requestTarget, secondsToMs } from '../request.ts'
import type { Sender } from '../sender.ts'
import { readVariable } from '../token.ts'

/** SUPPRESS_EMBEDS: otherwise Discord requests every URL that an agent, or its attacker, writes. */
const suppressEmbeds = 1 << 2

/** Messages through a webhook of Discord (discord.com/developers/docs/resources/webhook#execute-webhook). */
export const createDiscord = (
  entries: TargetSettings['discord'],
  env: NodeJS.ProcessEnv,
): Sender => ({
  isIdempotent: false,
  send: async ({ address, text }, attempt) => {
    const target = `discord:${address}`
    const url = getUrl(entries, address, env)
    // Without it Discord answers before it has stored the message.
    url.searchParams.set('wait', 'true')
    const response = await requestTarget(url, {
      target,
      // Notifies no one, whatever the text.
      json: { content: text, allowed_mentions: { parse: [] }, flags: suppressEmbeds },
      attempt,
    })
    const failure = toStatusError(target, response, {
      hint: hints[response.status],
      retryAfterMs: secondsToMs(response.json['retry_after']),
    })
    if (failure) throw failure
    return undefined
  },
  // discord.com/developers/docs/resources/webhook#get-webhook-with-token
  check: async (address, asking) => {
    const target = `discord:${address}`
    const url = getUrl(entries, address, env)
    const response = await requestTarget(url, { target, attempt: asking })
    const failure = toStatusError(target, response, { hint: hints[response.status] })
    if (failure) throw failure
    return response
  },
})

const hints: Readonly<Record<number, string>> = {
  400: 'Discord rejects this message; in a forum the URL needs ?thread_id=…',
  401: 'the webhook URL is no longer valid: copy it again from the channel settings',
  403: 'the webhook may not write there',
  404: 'the webhook was deleted: create a new one in the channel settings',
}

const getUrl = (entries: TargetSettings['discord'], name: string, env: NodeJS.ProcessEnv): URL => {
  // Own properties only: an event may name `constructor`.
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
  if (!entry)
    throw new DeliveryError('permanent', 'there is no discord target of this name', {
      code: 'target-invalid',
      hint: 'the names are under targets.discord in gateway.yaml',
    })
  return readVariable(entry.url_env, env, 'the URL of a Discord webhook', parseSecretUrl)
}
