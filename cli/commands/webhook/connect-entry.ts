import type { SourceProvider, WebhookSource } from '../../../shared/config/source.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { writeEntry } from '../../../shared/recipes/write-webhook.ts'
import { findPreset } from '../../../shared/recipes/presets.ts'
import { newWebhook, type WebhookAddOptions } from '../../../shared/recipes/new-webhook.ts'
import { isDeepStrictEqual } from 'node:util'
import { readYaml } from '../../../shared/config/yaml.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { yamlText } from '../../../shared/config-edit/add-entry.ts'

/**
 * Writes or removes the line `source` of an entry of `webhooks.yaml`, without touching a character of the
 * rest. Throws `usage` where that cannot be done, as for an entry in brackets. Pure.
 */
export const setSource = (
  text: string,
  index: number,
  source: WebhookSource | undefined,
): string => {
  const file = readYaml('', text)
  const { webhooks: entries = [] } = (file.value ?? {}) as { webhooks?: Entry[] }
  const before = entries[index]
  const own = (before?.['source'] ?? {}) as Entry
  const isThere = before?.['source'] !== undefined
  // The owner may have written it in another way.
  if (source && isThere && isDeepStrictEqual({ ...own, ...toValue(source) }, own)) return text
  const kept = Object.entries(own).filter(([name]) =>
    ['every', 'catch_up', 'at_most', 'api_url'].includes(name),
  )
  const at = file.problemAt(['webhooks', index, isThere ? 'source' : 'path'], '')
  const lines = text.split('\n')
  const eol = lines[at.line - 1]?.endsWith('\r') ? '\r' : ''
  const line = source && `${' '.repeat(at.column - 1)}${toLine(source, kept)}${eol}`
  // Below the path: what stands at the end of an entry may belong to the text above it.
  const place = isThere ? at.line - 1 : at.line
  const after = lines.toSpliced(place, isThere ? 1 : 0, ...(line === undefined ? [] : [line]))
  const { source: _, ...rest } = before ?? {}
  const entry = {
    ...rest,
    ...(source && { source: { ...toValue(source), ...Object.fromEntries(kept) } }),
  }
  const expected = { webhooks: entries.with(index, entry) }
  const changed = after.join('\n')
  const { value, problems } = readYaml('', changed)
  if (problems.length === 0 && isDeepStrictEqual(value, expected)) return changed
  throw new DoorwardError(
    'usage',
    'the line source cannot be changed the way the entry is written',
    {
      hint: source
        ? `write it by hand (doorward config edit webhooks): ${toLine(source, kept)}`
        : 'remove it by hand: doorward config edit webhooks',
    },
  )
}

type Entry = Readonly<Record<string, unknown>>

/** It keeps the settings that it had before. */
const toLine = (source: WebhookSource, kept: readonly (readonly [string, unknown])[]): string => {
  const named = Object.entries(toValue(source)).map(([name, value]) => [
    name,
    typeof value === 'string' ? yamlText(value) : value,
  ])
  const settings = [...named, ...kept].map(([name, value]) => `${String(name)}: ${String(value)}`)
  return `source: { ${settings.join(', ')} }`
}

const toValue = ({ provider, repository, hookId, mode, keyEnv }: WebhookSource) => ({
  provider,
  ...(keyEnv === undefined ? { repository, hook_id: hookId } : { key_env: keyEnv }),
  ...(mode && { mode }),
})

export type ConnectOptions = Pick<
  WebhookAddOptions,
  'path' | 'agent' | 'on' | 'deliverTo' | 'prompt'
> & {
  readonly poll?: boolean
  /** A bot of one's own, with one hook for all its repositories. */
  readonly asBot?: boolean
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
      return { agent: present.rules[0]?.agentName ?? '', isNew: false }
    }
    // GitLab takes one through its API; where deliveries are only read, none must get in without it.
    const preset = { ...findPreset(provider), secret: 'ours' as const }
    const agents = [...opened.config.agents.keys()]
    const agent = options.agent ?? agents.find((known) => known !== 'echo') ?? agents[0]
    const given = { ...options, path, ...(agent !== undefined && { agent }) }
    const webhook = newWebhook(preset, given, agents)
    await writeEntry(home, opened, { webhook, preset })
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
