import type { SourceProvider, WebhookSource } from '../../../shared/config/source.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { openConfig } from '../../config-edit/open-config.ts'
import { setSource } from '../../config-edit/set-source.ts'
import type { Context } from '../../context.ts'
import { writeEntry } from './add.ts'
import { findPreset, newWebhook, type WebhookAddOptions } from './presets.ts'

export type ConnectOptions = Pick<
  WebhookAddOptions,
  'path' | 'agent' | 'on' | 'deliverTo' | 'prompt'
> & {
  readonly poll?: boolean
  /** Stripe: the variable with its key. */
  readonly keyEnv?: string
}

/** The webhook at this path; where there is none, writes its entry and its secret. */
export const ensureEntry = async (
  { home, terminal }: Context,
  { path, provider }: { readonly path: string; readonly provider: SourceProvider },
  options: ConnectOptions,
): Promise<{ readonly agent: string; readonly isNew: boolean }> =>
  withConfigLock(home, async () => {
    const opened = await openConfig(home)
    const present = opened.config.webhooks.find((webhook) => webhook.path === path)
    if (present) {
      if (Object.keys(options).some((name) => name !== 'path'))
        terminal.say(`${path} exists, and stays as it is: doorward config edit webhooks`)
      return { agent: present.rules[0].agentName, isNew: false }
    }
    // GitLab takes one through its API; where deliveries are only read, none must get in without it.
    const preset = { ...findPreset(provider), secret: 'ours' as const }
    const agents = [...opened.config.agents.keys()]
    const agent = options.agent ?? agents.find((known) => known !== 'echo') ?? agents[0]
    const given = { ...options, path, ...(agent !== undefined && { agent }) }
    const webhook = newWebhook(preset, given, agents)
    await writeEntry(home, opened, { webhook, preset, options: given })
    return { agent: webhook.agent, isNew: true }
  })

/** Notes in the entry which hook is its own; with undefined, that it has none. */
export const writeSource = async (
  { home }: Pick<Context, 'home'>,
  source: WebhookSource | undefined,
  path: string,
): Promise<void> =>
  withConfigLock(home, async () => {
    const opened = await openConfig(home)
    const index = opened.config.webhooks.findIndex((webhook) => webhook.path === path)
    const { text } = opened.file('webhooks')
    const changed = setSource(text, index, source)
    if (changed === text) return
    opened.check('webhooks', changed)
    await opened.write('webhooks', changed)
  })
