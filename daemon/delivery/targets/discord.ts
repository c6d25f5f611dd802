import { listSecrets } from '../../../shared/config/environment.ts'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import { parseDiscordUrl } from '../../../shared/config/target-secrets.ts'
import { DeliveryError } from '../delivery-error.ts'
import { failureOfAnswer, requestTarget, secondsIn } from '../request.ts'
import type { Sender } from '../sender.ts'

/** SUPPRESS_EMBEDS: Discord would call at every address that an agent, or who steers it, writes. */
const suppressEmbeds = 1 << 2

/** Messages by a webhook of Discord (discord.com/developers/docs/resources/webhook#execute-webhook). */
export const createDiscord = (
  entries: TargetSettings['discord'],
  env: NodeJS.ProcessEnv,
): Sender => ({
  knowsRepeats: false,
  send: async ({ address, text }, attempt) => {
    const target = `discord:${address}`
    const url = getUrl(entries, address, env)
    // Without it Discord answers before it knows whether the message can be kept.
    url.searchParams.set('wait', 'true')
    const answer = await requestTarget(url, {
      target,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        content: text,
        // Nobody is called, whatever is written.
        allowed_mentions: { parse: [] },
        flags: suppressEmbeds,
      }),
      attempt,
    })
    const failure = failureOfAnswer(target, answer, {
      hint: hints[answer.status],
      retryAfterMs: secondsIn(answer.json['retry_after']),
    })
    if (failure) throw failure
    return undefined
  },
})

const hints: Readonly<Record<number, string>> = {
  400: 'Discord cannot use this message; in a forum the URL needs ?thread_id=…',
  401: 'the URL is not that of a webhook any more: copy it again from the settings of the channel',
  403: 'the webhook may not write there',
  404: 'the webhook was deleted: make a new one in the settings of the channel',
}

const getUrl = (entries: TargetSettings['discord'], name: string, env: NodeJS.ProcessEnv): URL => {
  // Own ones only: an event may name `constructor`.
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
  if (!entry)
    throw new DeliveryError('refused', 'there is no discord target of this name', {
      code: 'target-invalid',
      hint: 'the names stand under targets.discord in gateway.yaml',
    })
  const [text] = listSecrets([entry.url_env], env)
  const url = text === undefined ? undefined : parseDiscordUrl(text)
  if (url) return url
  throw new DeliveryError(
    'refused',
    `${entry.url_env} ${text === undefined ? 'is unset' : 'does not hold the URL of a webhook of Discord'}`,
    { hint: `set ${entry.url_env} in .env: doorward config edit env` },
  )
}
