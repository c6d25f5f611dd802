import type { MissedHook } from '../../../shared/api/hooks.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { tableLines } from '../../terminal/table.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { type ConnectOptions, ensureEntry, writeSource } from './connect-entry.ts'

const limitMs = 60_000

/**
 * Has the events of a Stripe account read: all with `--poll`, else those that its endpoint did not get. Makes
 * no endpoint: a key that can only read is enough. Throws `config-invalid`, `webhook-not-found`,
 * `source-failed`.
 */
export const connectStripe = async (
  context: Context,
  { poll, keyEnv = 'STRIPE_API_KEY', path = '/webhook/stripe', ...options }: ConnectOptions,
): Promise<void> => {
  const { home, terminal } = context
  const { config, env } = await openConfig(home)
  if (listSecrets([keyEnv], env).length === 0)
    throw new DoorwardError('config-invalid', `${keyEnv} is not set`, {
      hint: 'make a restricted key with Events: Read at https://dashboard.stripe.com/apikeys, and set it in .env: doorward config edit env',
    })
  const present = config.webhooks.find((webhook) => webhook.path === path)
  if (!present && !poll)
    throw new DoorwardError('webhook-not-found', `no webhook is defined at ${path}`, {
      hint: 'doorward webhook add stripe, and then this again; or --poll, without a public address',
    })
  const entry = await ensureEntry(context, { path, provider: 'stripe' }, options)
  const mode = poll || present?.source?.mode === 'poll' ? ('poll' as const) : undefined
  const source = { provider: 'stripe', repository: '', hookId: 0, keyEnv } as const
  await writeSource(context, { ...source, ...(mode && { mode }) }, path)
  const read = await withDaemon(context, async (client) => {
    await client.post('/daemon/reload')
    // Notes the time from which events are read.
    const { hooks } = await client.get<{ hooks: MissedHook[] }>('/events/missed?fresh=true', {
      timeoutMs: limitMs,
    })
    return hooks.find((hook) => hook.path === path)
  })
  if (read?.problem !== undefined)
    throw new DoorwardError('source-failed', toPlainLine(read.problem), { hint: read.hint })
  const report = { provider: 'stripe', path, keyEnv, mode: mode ?? 'push', ...entry }
  if (terminal.json) return terminal.printJson(report)
  const lines = tableLines([
    ['connected', `Stripe, with the key in ${keyEnv}`],
    ['webhook', `${path}${entry.isNew ? ', new in webhooks.yaml' : ''}`],
    ['events', mode ? 'all are read from Stripe: no address is needed' : 'what is missed is read'],
    ['agent', entry.agent],
  ])
  for (const line of lines) terminal.print(line)
}

/** Ends the reading; the webhook, its endpoint and the key stay. */
export const disconnectStripe = async (context: Context, path: string): Promise<void> => {
  const { terminal } = context
  await writeSource(context, undefined, path)
  await reloadIfRunning(context)
  if (terminal.json) return terminal.printJson({ provider: 'stripe', path, removed: true })
  terminal.print(`the events of Stripe are no longer read for ${path}`)
}
