import type { WebhookSummary } from '../shared/api.ts'
import type { Context } from './context.ts'
import { withDaemon } from './reach-daemon.ts'
import { moment } from './show-time.ts'
import { type Cell, cut, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Prints the webhook definitions with their URLs, and whether their secrets are set. */
export const listWebhooks = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) =>
    client.get<{ webhooks: WebhookSummary[] }>('/webhooks'),
  )
  if (terminal.json) {
    terminal.printJson(answer)
    return
  }
  if (answer.webhooks.length === 0) {
    terminal.say('no webhooks are defined\nhint: doorward config edit webhooks')
    return
  }
  const now = new Date()
  const header = ['PATH', 'AGENT', 'SCHEME', 'SECRET', 'LAST EVENT', 'DELIVERS TO', 'URL']
  const rows = answer.webhooks.map((webhook) =>
    webhookRow(webhook, now, terminal).toSpliced(-1, 0, deliversTo(webhook)),
  )
  // The URL is there to be copied: it is never cut.
  for (const line of tableLines([header, ...rows])) terminal.print(line)
}

const deliversTo = ({ deliverTo }: WebhookSummary): string =>
  cut(deliverTo.join(', '), 40) || 'nowhere'

/** One webhook as a row of a table; `secretLabel` stands before the word on its secret. */
export const webhookRow = (
  webhook: WebhookSummary,
  now: Date,
  terminal: Terminal,
  secretLabel = '',
): Cell[] => [
  webhook.path,
  webhook.agent,
  webhook.scheme,
  {
    text: `${secretLabel}${webhook.secret}`,
    paint: (text) => terminal.paint(webhook.secret === 'set' ? 'green' : 'red', text),
  },
  webhook.lastEventAt ? moment(webhook.lastEventAt, now) : '-',
  webhook.enabled ? webhook.url : 'disabled',
]
