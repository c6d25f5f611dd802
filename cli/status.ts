import type { Status } from '../shared/api.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { eventRow } from './event-line.ts'
import { findDaemon } from './find-daemon.ts'
import { duration } from './show-time.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'
import { webhookRow } from './webhook-list.ts'

/** One screen of everything. Looks, and starts nothing: throws `daemon-unreachable` when none runs. */
export const showStatus = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findDaemon(context)
  try {
    const status = await client.get<Status>('/status')
    if (terminal.json) terminal.printJson(status)
    else printStatus(status, terminal, new Date())
  } finally {
    client.close()
  }
}

const printStatus = (status: Status, terminal: Terminal, now: Date): void => {
  const { queue } = status
  const since = duration(now.getTime() - Date.parse(status.startedAt))
  terminal.print(`doorward ${plainLine(status.version)} at ${status.url}, up for ${since}`)
  if (status.publicUrl) terminal.print(`public at ${plainLine(status.publicUrl)}`)
  terminal.print(`queue: ${queue.running} running, ${queue.waiting} waiting`)

  for (const { detail, hint } of status.problems) {
    terminal.print(`${terminal.paint('yellow', '!')} ${plainLine(detail)}`)
    terminal.print(`  ${plainLine(hint)}`)
  }
  printSection(
    'Accounts',
    status.providers.map((row) => providerRow(row, terminal)),
    terminal,
  )
  printSection(
    'Webhooks',
    status.webhooks.map((row) => webhookRow(row, now, terminal, 'secret: ')),
    terminal,
  )
  printSection(
    'Recent events',
    status.events.map((row) => eventRow(row, now, terminal.paint)),
    terminal,
    terminal.columns === undefined ? undefined : terminal.columns - 2,
  )
}

const providerRow = (row: Status['providers'][number], terminal: Terminal): Cell[] => [
  row.provider,
  {
    text: row.status,
    paint: (text) =>
      terminal.paint(
        row.status === 'ok' ? 'green' : row.status === 'not-logged-in' ? 'gray' : 'red',
        text,
      ),
  },
  row.account?.name ?? '',
]

/** With `columns` the rows are cut to so many; a URL is there to be copied and stays whole. */
const printSection = (
  title: string,
  rows: readonly Cell[][],
  terminal: Terminal,
  columns?: number,
): void => {
  terminal.print(`\n${terminal.paint('bold', title)}`)
  if (rows.length === 0) terminal.print('  none')
  for (const line of tableLines(rows, columns)) terminal.print(`  ${line}`)
}
