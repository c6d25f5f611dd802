import type { WebhookSummary } from '../../../shared/api/api.ts'
import { cut, toPlainLine, measureWidth } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { moment } from '../../terminal/format.ts'
import { type Cell, narrowed, tableLines } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** Prints the webhook definitions with their URLs, and whether their secrets are set. */
export const listWebhooks = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) =>
    client.get<{ webhooks: WebhookSummary[] }>('/webhooks'),
  )
  if (terminal.json) return terminal.printJson(answer)
  if (answer.webhooks.length === 0)
    return terminal.say('no webhooks are defined\nhint: doorward config edit webhooks')
  const shape = { columns: terminal.columns, withTargets: true }
  for (const line of webhookLines(answer.webhooks, new Date(), terminal, shape))
    terminal.print(line)
}

type Shape = {
  readonly columns: number | undefined
  /** Printed before the state of the secret. */
  readonly secretLabel?: string
  /** Adds a header and a column of targets. */
  readonly withTargets?: boolean
}

/**
 * Webhooks as table lines that end with their URLs. URLs are meant to be copied and are never cut: in a
 * narrow terminal each gets a line of its own.
 */
export const webhookLines = (
  webhooks: readonly WebhookSummary[],
  now: Date,
  terminal: Pick<Terminal, 'paint'>,
  { columns, secretLabel = '', withTargets = false }: Shape,
): string[] => {
  const header = ['PATH', 'AGENT', 'SCHEME', 'SECRET', 'LAST EVENT', 'DELIVERS TO']
  const all = webhooks.flatMap((webhook) => [
    {
      row: [
        ...webhookRow(webhook, now, terminal, secretLabel),
        ...(withTargets ? [webhook.rules ? '' : deliversTo(webhook)] : []),
      ],
      url: webhook.enabled ? webhook.url : 'disabled',
    },
    ...(withTargets ? (webhook.rules ?? []).map(toRuleRow) : []),
  ])
  const rows = all.map(({ row }) => row)
  const urls = all.map(({ url }) => url)
  const asOne = tableLines([
    ...(withTargets ? [[...header, 'URL']] : []),
    ...rows.map((row, index) => [...row, urls[index] ?? '']),
  ])
  if (columns === undefined || asOne.every((line) => measureWidth(toPlainLine(line)) <= columns))
    return asOne
  // Columns to shorten when space is short: last event, scheme, agent.
  const places = withTargets ? [4, 2, 1] : [2, 1]
  const shown = narrowed([...(withTargets ? [header] : []), ...rows], columns, places, 10)
  const lines = tableLines(shown.rows, columns)
  const first = lines.length - rows.length
  return lines.flatMap((line, index) =>
    index < first || urls[index - first] === ''
      ? [line]
      : [line, `  ${toPlainLine(urls[index - first] ?? '')}`],
  )
}

/** A rule has the address and the secret of its webhook. */
const toRuleRow = (rule: NonNullable<WebhookSummary['rules']>[number]) => ({
  row: [`- ${rule.name}`, rule.agent, '', '', '', deliversTo(rule)],
  url: '',
})

const deliversTo = ({ deliverTo }: Pick<WebhookSummary, 'deliverTo'>): string =>
  cut(deliverTo.join(', '), 40) || 'nowhere'

const webhookRow = (
  webhook: WebhookSummary,
  now: Date,
  terminal: Pick<Terminal, 'paint'>,
  secretLabel: string,
): Cell[] => [
  webhook.path,
  webhook.rules ? describeRules(webhook.rules.length) : webhook.agent,
  webhook.scheme,
  {
    text: `${secretLabel}${webhook.secret}`,
    paint: (text) => terminal.paint(webhook.secret === 'set' ? 'green' : 'red', text),
  },
  webhook.lastEventAt ? moment(webhook.lastEventAt, now) : '-',
]

/** `3 rules` */
export const describeRules = (count: number): string => (count === 1 ? '1 rule' : `${count} rules`)
