import type { WebhookSummary } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { plainLine } from '../shared/text.ts'
import { nearestWebhook } from './nearest-webhook.ts'
import type { Terminal } from './terminal.ts'

/**
 * The path of the definition that is served at this path, with or without `/webhook`. One that the daemon
 * does not know comes back as it is, and that is said.
 */
export const knownWebhook = async (
  client: Client,
  path: string,
  terminal: Terminal,
): Promise<string> => {
  const { webhooks } = await client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
  const found =
    webhooks.find((webhook) => webhook.path === path) ??
    webhooks.find(({ url }) => pathOf(url) === path)
  if (found) return found.path
  const hint = nearestWebhook(
    path,
    webhooks.map((webhook) => webhook.path),
  )
  terminal.say(
    `no webhook is defined at "${plainLine(path)}"${hint === undefined ? '' : `; ${plainLine(hint)}`}`,
  )
  return path
}

const pathOf = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).pathname : undefined
