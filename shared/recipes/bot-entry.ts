import { type BotSummary, toBotPath, toBotSecretName } from '../api/bots.ts'
import type { Home } from '../home/home.ts'
import { withConfigLock } from '../home/lock.ts'
import { addEntry } from '../config-edit/add-entry.ts'
import { openConfig } from '../config-edit/open-config.ts'

/**
 * Writes the entry that takes the deliveries of a bot, of all its repositories: it runs nothing, until it has
 * rules. False where its path has an entry already.
 */
export const writeBotEntry = async (
  home: Home,
  { name, isReachable }: Pick<BotSummary, 'name' | 'isReachable'>,
): Promise<boolean> =>
  withConfigLock(home, async () => {
    const opened = await openConfig(home)
    const path = toBotPath(name)
    if (opened.config.webhooks.some((webhook) => webhook.path === path)) return false
    const file = opened.file('webhooks')
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
    const { text } = addEntry(file.text, 'webhooks', {
      lines,
      expected: [...(webhooks ?? []), value],
    })
    opened.check('webhooks', text)
    await opened.write('webhooks', text)
    return true
  })
