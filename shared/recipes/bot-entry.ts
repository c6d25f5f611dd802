import { type BotSummary, toBotPath, toBotSecretName } from '../api/bots.ts'
import { addEntry } from '../config-edit/add-entry.ts'
import { openConfig, type OpenConfig } from '../config-edit/open-config.ts'
import type { Home } from '../home/home.ts'
import { withConfigLock } from '../home/lock.ts'

type NamedBot = Pick<BotSummary, 'name' | 'isReachable'>

/**
 * Writes the entry that takes the deliveries of a bot, of all its repositories: it runs nothing, until it has
 * rules. False where its path has an entry already.
 */
export const writeBotEntry = async (home: Home, bot: NamedBot): Promise<boolean> =>
  withConfigLock(home, async () => {
    const before = await openConfig(home)
    const open = withBotEntry(before, bot)
    if (open === before) return false
    await open.write('webhooks', open.file('webhooks').text)
    return true
  })

/** The configuration with that entry, which is not written; the same where its path has one already. */
export const withBotEntry = (open: OpenConfig, { name, isReachable }: NamedBot): OpenConfig => {
  const path = toBotPath(name)
  if (open.config.webhooks.some((webhook) => webhook.path === path)) return open
  const file = open.file('webhooks')
  const { webhooks } = (file.value ?? {}) as { webhooks?: unknown[] | null }
  const source = { provider: 'github', app: name, ...(!isReachable && { mode: 'poll' }) }
  const secret = toBotSecretName(name)
  const value = { path, signature_scheme: 'github', secret_env: secret, source, rules: [] }
  const lines = [
    `# The deliveries of the bot ${name}, of all repositories in which it is installed.`,
    `- path: ${path}`,
    '  signature_scheme: github',
    `  secret_env: ${secret}`,
    `  source: { provider: github, app: ${name}${isReachable ? '' : ', mode: poll'} }`,
    '  # What runs: doorward help bots',
    '  rules: []',
  ]
  const expected = [...(webhooks ?? []), value]
  return open.with('webhooks', addEntry(file.text, 'webhooks', { lines, expected }).text)
}
