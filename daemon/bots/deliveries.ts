import type { Gateway } from '../../shared/config/schema.ts'
import { getPublicPath, type Webhook } from '../../shared/config/webhook.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import { parseText } from '../sender-apis/api-request.ts'
import { createPast } from '../sender-apis/github-hooks.ts'
import type { PastApi } from '../sender-apis/sender-api.ts'
import { requestAsApp } from './app-api.ts'
import type { BotRecord } from './bot-record.ts'

/**
 * The list of deliveries of an App, which GitHub keeps for three days:
 * docs.github.com/rest/apps/webhooks#list-deliveries-for-an-app-webhook.
 */
export const createBotPast = (getBot: () => Promise<BotRecord>): PastApi => ({
  title: 'GitHub',
  past: {
    list: async (hook, since, signal) => (await open(getBot)).list(hook, since, signal),
    fetch: async (hook, id, signal) => (await open(getBot)).fetch(hook, id, signal),
  },
})

const open = async (getBot: () => Promise<BotRecord>) => {
  const bot = await getBot()
  return createPast(
    async (path, { signal, etag, handles = [] }) => {
      const { status, headers, text } = await requestAsApp(bot, path, { signal, etag, handles })
      return { status, headers, json: parseText(text) }
    },
    bot.apiUrl,
    () => '/app/hook/deliveries',
  )
}

type HookMover = {
  readonly get: (name: string) => Promise<BotRecord>
  readonly moveHook: (bot: BotRecord, hookUrl: string) => Promise<boolean>
}

/**
 * Makes the deliveries of each bot arrive at the address that the configuration has now: one request, for all
 * its repositories. A bot whose deliveries are read keeps its address.
 */
export const moveHooks = async (
  bots: HookMover,
  { webhooks, gateway }: { readonly webhooks: readonly Webhook[]; readonly gateway: Gateway },
  log: Pick<Log, 'info' | 'warn'>,
): Promise<void> => {
  const { public_url: publicUrl } = gateway.server
  for (const { path, source, enabled } of webhooks) {
    if (source?.app === undefined || source.mode === 'poll' || !enabled) continue
    if (publicUrl === undefined) continue
    const webhook = path
    try {
      const url = `${publicUrl.replace(/\/+$/, '')}${getPublicPath(path)}`
      if (await bots.moveHook(await bots.get(source.app), url))
        log.info({ webhook }, 'the deliveries of the bot come to the new address')
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      log.warn(
        { webhook, code: error.code },
        'the deliveries of the bot still have the old address',
      )
    }
  }
}
