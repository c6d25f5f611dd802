import type { Status } from '../shared/api.ts'
import { duration } from '../shared/duration.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { eventLines } from './event-line.ts'
import { findDaemon } from './find-daemon.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'
import { webhookLines } from './webhook-list.ts'

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

  status.problems.forEach(({ detail, hint }, index) => {
    terminal.print(`${terminal.paint('yellow', '!')} ${plainLine(detail)}`)
    // Several in one file are mended at once.
    if (hint !== status.problems[index + 1]?.hint) terminal.print(`  ${plainLine(hint)}`)
  })
  const columns = terminal.columns === undefined ? undefined : terminal.columns - 2
  const accounts = tableLines(status.providers.map((row) => providerRow(row, terminal)))
  printSection('Accounts', accounts, terminal)
  printSection(
    'Webhooks',
    webhookLines(status.webhooks, now, terminal, { columns, secretLabel: 'secret: ' }),
    terminal,
  )
  const events = eventLines(status.events, now, terminal.paint, { columns })
  printSection('Recent events', events, terminal)
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

const printSection = (title: string, lines: readonly string[], terminal: Terminal): void => {
  terminal.print(`\n${terminal.paint('bold', title)}`)
  if (lines.length === 0) terminal.print('  none')
  for (const line of lines) terminal.print(`  ${line}`)
}
