import type { WebhookSummary } from '../../shared/api/api.ts'
import type { Client } from '../../shared/client/client.ts'
import type { Webhook } from '../../shared/config/webhook.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { didYouMean, findNearest, toPlainLine } from '../../shared/text.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The webhook at this path, with or without `/webhook`. Throws `webhook-not-found` with the nearest one. */
export const webhookAt = (path: string, webhooks: readonly Webhook[]): Webhook => {
  const webhook = webhooks.find((known) => known.path === path || known.urlPaths.includes(path))
  if (webhook) return webhook
  const paths = webhooks.map((known) => known.path)
  throw new DoorwardError('webhook-not-found', `no webhook is defined at "${path}"`, {
    hint:
      nearestWebhook(path, paths) ??
      (paths.length > 0 ? `one of ${paths.join(', ')}` : 'doorward config edit webhooks'),
  })
}

/**
 * The path of the webhook served at this path, with or without `/webhook`. A path that the daemon does not
 * know is returned unchanged, with a note.
 */
export const knownWebhook = async (
  client: Client,
  path: string,
  terminal: Terminal,
): Promise<string> => {
  const { webhooks } = await client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
  const found =
    webhooks.find((webhook) => webhook.path === path) ??
    webhooks.find(({ url }) => parseUrlPath(url) === path)
  if (found) return found.path
  const hint = nearestWebhook(
    path,
    webhooks.map((webhook) => webhook.path),
  )
  terminal.say(
    `no webhook is defined at "${toPlainLine(path)}"${hint === undefined ? '' : `; ${toPlainLine(hint)}`}`,
  )
  return path
}

const parseUrlPath = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).pathname : undefined

/** `did you mean "/webhook/github"?` for `github` or `/gihub` too. */
export const nearestWebhook = (given: string, paths: readonly string[]): string | undefined => {
  const name = findNearest(bare(given), paths.map(bare))
  const path = paths.find((known) => bare(known) === name)
  return path === undefined ? didYouMean(given, paths) : `did you mean "${path}"?`
}

/** The part of a path without `/webhook`. */
const bare = (path: string): string => path.replace(/^\/?(webhook\/)?/, '')
