import type {
  EventRecord,
  Machine,
  Status,
  TokenSummary,
  WebhookSummary,
} from '../../shared/api/api.ts'
import { describeToday, describeWhat, formatTokens } from '../../shared/event-stages.ts'
import { findTokenFileProblem } from '../../shared/client/discovery.ts'
import { isLoopbackUrl } from '../../shared/net.ts'
import { cut, formatDuration, toPlainLine, toPlainText, measureWidth } from '../../shared/text.ts'
import type { Context } from '../context.ts'
import type { Client } from '../../shared/client/client.ts'
import { findDaemon, findRunningDaemon } from '../daemon-client/connect.ts'
import { exitUnreachable } from '../exit-code.ts'
import { endingWords, moment } from '../terminal/format.ts'
import { asInvoked, type Style, type Terminal } from '../terminal/terminal.ts'
import { wrapped, wrapWords } from '../terminal/wrap.ts'
import { stateCell } from './events/format.ts'
import { describeRules } from './webhook/list.ts'
import { expiryWords, roughly } from '../../shared/login-words.ts'

/** One screen of everything. It starts no daemon: throws `daemon-unreachable` when none runs. */
export const showStatus = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findDaemon(context)
  try {
    const status = await client.get<Status>('/status')
    if (terminal.json) {
      terminal.printJson(status)
      return
    }
    terminal.print(statusLines(status, new Date(), terminal).join('\n'))
  } finally {
    client.close()
  }
}

type Page = Pick<Terminal, 'columns' | 'paint'>

/** The most rows per section; their own commands show all. */
const mostFailures = 3
const mostWebhooks = 8
const mostProblems = 8

/** A longer path does not fit into 40 columns. */
const mostOfPath = 38

/** A status on one screen, wrapped to the terminal. All text is stripped of control characters. */
export const statusLines = (status: Status, now: Date, page: Page): string[] => [
  ...aboutDaemon(status, now, page),
  ...problems(status, page),
  ...section('Machines', machineRows(status, now, page), page),
  ...section('Logins', loginLines(status, now, page), page),
  // A worker has none.
  ...(status.broker && status.webhooks.length === 0
    ? []
    : section('Webhooks', webhookRows(status.webhooks, now, page), page)),
  ...section('Sources', sourceRows(status, now, page), page),
  ...failures(status, now, page),
]

const section = (title: string, lines: readonly string[], { paint }: Page): string[] =>
  lines.length === 0 ? [] : ['', paint('bold', title), ...lines]

const aboutDaemon = (status: Status, now: Date, { columns, paint }: Page): string[] => {
  const { version, url, publicUrl, queue, startedAt, approvals = [] } = status
  const since = `up for ${formatDuration(now.getTime() - Date.parse(startedAt))}, since ${moment(startedAt, now)}`
  const waiting = `${queue.running} running, ${queue.waiting} waiting`
  const ending = endingWords(status)
  const [label, address] = publicUrl === undefined ? ['', ''] : publicWords(publicUrl)
  return [
    ...row(
      `${paint('bold', 'doorward')} ${toPlainLine(version)}`,
      `at ${toPlainLine(url)}, ${since}`,
      columns,
      2,
    ),
    ...(publicUrl === undefined ? [] : row(label, `at ${address}`, columns, 2)),
    ...(status.tunnel ? row('tunnel', tunnelWords(status.tunnel, now), columns, 2) : []),
    ...(ending === undefined ? [] : row('ending', ending, columns, 2)),
    ...row('queue', waiting, columns, 2),
    ...(status.today ? row('used', usedToday(status.today), columns, 2) : []),
    ...(approvals.length > 0
      ? row(
          'approvals',
          `${approvals.length} waiting for you: ${asInvoked('doorward events --state waiting')}`,
          columns,
          2,
        )
      : []),
    ...(status.broker ? row('broker', describeBroker(status.broker), columns, 2) : []),
  ]
}

/** `$0.42 today, 3 runs, 1200 tokens` */
const usedToday = (sum: NonNullable<Status['today']>): string =>
  [
    describeToday(sum),
    `${sum.runs} ${sum.runs === 1 ? 'run' : 'runs'}`,
    ...(sum.costUsd === undefined
      ? []
      : [`${formatTokens(sum.inputTokens + sum.outputTokens)} tokens`]),
  ].join(', ')

/** Without `server.public_url` the address is that of `server.public_port`, for a tunnel to lead to. */
const publicWords = (url: string): [label: string, words: string] =>
  isLoopbackUrl(url)
    ? ['webhooks', `${toPlainLine(url)}, for a tunnel: no public address is set`]
    : ['public', toPlainLine(url)]

const describeBroker = ({
  connected,
  server = '',
  waiting,
  redelivered,
}: NonNullable<Status['broker']>): string =>
  [
    connected ? `connected to ${toPlainLine(server)}` : 'not connected',
    ...(waiting === undefined ? [] : [`${waiting} for workers`]),
    ...(redelivered > 0 ? [`${redelivered} given to another worker`] : []),
  ].join(', ')

const machineRows = (
  { machines = [], version }: Status,
  now: Date,
  { columns }: Page,
): string[] => {
  const width = Math.max(0, ...machines.map(({ name }) => measureWidth(toPlainLine(name))))
  return machines.flatMap((machine) => {
    const words = [
      machine.role,
      ...machine.agents.map(describeLoad),
      ...(machine.version === version ? [] : [`doorward ${toPlainLine(machine.version)}`]),
      `seen ${roughly(now.getTime() - Date.parse(machine.seenAt))} ago`,
    ]
    return row(`  ${toPlainLine(machine.name)}`, words.join(', '), columns, 4, 2 + width)
  })
}

const describeLoad = ({ name, running, free }: Machine['agents'][number]): string =>
  `${toPlainLine(name)} ${running} of ${running + free}`

/** `cloudflared, a request of our own came through it 20 s ago` */
const tunnelWords = (
  { program, state, arrivedAt }: NonNullable<Status['tunnel']>,
  now: Date,
): string => {
  const came = arrivedAt === undefined ? 'no request' : `a request of our own`
  const when = arrivedAt === undefined ? 'yet' : ago(arrivedAt, now)
  return `${toPlainLine(program)}${state === 'up' ? '' : ` (${state})`}, ${came} came through it ${when}`
}

/** A label and its text on one line, or the text below where both do not fit. */
const row = (
  first: string,
  rest: string,
  columns: number | undefined,
  indent: number,
  width = 0,
): string[] => {
  const own = measureWidth(toPlainText(first))
  const gap = ' '.repeat(width === 0 ? 1 : Math.max(0, width - own) + 2)
  const taken = own + gap.length
  if (columns === undefined || taken + measureWidth(rest) <= columns)
    return [`${first}${gap}${rest}`.trimEnd()]
  // Too narrow for words of a usual length: put the text below.
  if (columns - taken >= 30) {
    const [start = '', ...more] = wrapWords(rest, columns, { used: taken, indent: taken })
    return [`${first}${gap}${start}`, ...more]
  }
  const [start = '', ...more] = wrapWords(rest, columns, { used: indent, indent })
  return [first, `${' '.repeat(indent)}${start}`, ...more]
}

const padded = (text: string, width: number): string =>
  `${text}${' '.repeat(Math.max(0, width - measureWidth(text)))}`

const loginMarks: Readonly<Record<string, readonly [string, Style]>> = {
  ok: ['✓', 'green'],
  expired: ['!', 'yellow'],
  'needs-login': ['✗', 'red'],
}

const loginLines = (
  { tokens, providers, problems: all }: Status,
  now: Date,
  { columns, paint }: Page,
): string[] => {
  const names = tokens.map(({ provider }) => toPlainLine(provider))
  const accounts = tokens.map(({ account }) => cut(toPlainLine(account?.name ?? ''), 28))
  const nameWidth = Math.max(0, ...names.map(measureWidth))
  const accountWidth = Math.max(0, ...accounts.map(measureWidth))
  const lines = tokens.flatMap((token, index) => {
    const [mark, style] = loginMarks[token.status] ?? ['?', 'reset']
    const name = padded(names[index] ?? '', nameWidth)
    const account = padded(accounts[index] ?? '', accountWidth)
    const words = token.status === 'needs-login' ? mend(token, all) : expiryWords(token, now)
    const first = `  ${paint(style, mark)} ${name} ${account}`.trimEnd()
    return row(first, words, columns, 4, 4 + nameWidth + 1 + accountWidth)
  })
  const missing = providers
    .filter(({ provider }) => !tokens.some((token) => token.provider === provider))
    .map(({ provider }) => toPlainLine(provider))
  return missing.length === 0
    ? lines
    : [...lines, ...indented(`not logged in: ${missing.join(', ')}`, columns, 2)]
}

/** How to fix a login, as a command where there is one. */
const mend = ({ provider }: TokenSummary, all: Status['problems']): string => {
  const problem = findTokenFileProblem(all, provider)
  return problem
    ? `its token file cannot be read: ${toPlainLine(asInvoked(problem.hint || problem.detail))}`
    : `log in again: ${asInvoked(`doorward oauth login ${toPlainLine(provider)}`)}`
}

const indented = (text: string, columns: number | undefined, indent: number): string[] => {
  const [start = '', ...more] = wrapWords(text, columns, { used: indent, indent })
  return [`${' '.repeat(indent)}${start}`, ...more]
}

const webhookRows = (
  webhooks: readonly WebhookSummary[],
  now: Date,
  { columns, paint }: Page,
): string[] => {
  if (webhooks.length === 0)
    return indented(`none: ${asInvoked('doorward config edit webhooks')}`, columns, 2)
  const shown = webhooks.slice(0, mostWebhooks)
  const width = Math.max(0, ...shown.map(({ path }) => measureWidth(toPlainLine(path))))
  const lines = shown.flatMap((webhook) => {
    const [mark, style] = webhookMark(webhook)
    const first = `  ${paint(style, mark)} ${toPlainLine(webhook.path)}`
    return row(first, webhookWords(webhook, now), columns, 4, 4 + width)
  })
  const more = webhooks.length - shown.length
  return more === 0
    ? lines
    : [...lines, ...indented(`and ${more} more: ${asInvoked('doorward webhook list')}`, columns, 2)]
}

const webhookMark = ({ enabled, secret }: WebhookSummary): readonly [string, Style] => {
  if (!enabled) return ['-', 'gray']
  return secret === 'set' ? ['✓', 'green'] : secret === 'none' ? ['!', 'yellow'] : ['✗', 'red']
}

/** `runs reviewer, last event 3 min ago (4 done, 1 failed)`, and a problem with its secret. */
const webhookWords = (webhook: WebhookSummary, now: Date): string => {
  const { enabled, agent, rules, secret, lastEventAt, counts } = webhook
  if (!enabled) return 'disabled'
  const counted = (['done', 'failed', 'rejected', 'dropped'] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state]} ${state}`)
  const last = lastEventAt === null ? 'no event yet' : `last event ${ago(lastEventAt, now)}`
  return [
    rules ? describeRules(rules.length) : `runs ${toPlainLine(agent)}`,
    secret === 'unset' ? 'secret unset' : secret === 'none' ? 'unsigned' : [],
    `${last}${counted.length === 0 ? '' : ` (${counted.join(', ')})`}`,
  ]
    .flat()
    .join(', ')
}

/** `slack  connected since 10:04, last event 3 min ago: /webhook/slack` */
const sourceRows = ({ sources = [] }: Status, now: Date, { columns, paint }: Page): string[] =>
  sources.flatMap(({ kind, state, since, lastEventAt, ignored, webhooks }) => {
    const words = [
      since === undefined ? sourceStates[state] : `connected since ${moment(since, now)}`,
      lastEventAt === undefined ? 'no event yet' : `last event ${ago(lastEventAt, now)}`,
      ...(ignored === undefined
        ? []
        : [
            `${ignored} ${kind === 'telegram' || kind === 'slack' ? 'of other people ignored' : 'left out'}`,
          ]),
    ]
    const paths = webhooks.length === 0 ? 'buttons of approvals' : webhooks.join(', ')
    const mark = state === 'connected' ? paint('green', '✓') : paint('yellow', '!')
    const text = `${words.join(', ')}: ${toPlainLine(paths)}`
    return row(`${mark} ${kind}`, text, columns, 4, 2 + 'telegram'.length)
  })

const sourceStates = {
  connecting: 'connecting',
  connected: 'connected',
  waiting: 'not connected, trying again',
  failed: 'failed',
} as const

const hasFailed = ({ state }: EventRecord): boolean => state === 'failed' || state === 'dropped'

const failures = (
  { events, failures: failed = events.filter(hasFailed) }: Status,
  now: Date,
  page: Page,
): string[] => {
  const { columns, paint } = page
  const lines = failed.slice(0, mostFailures).flatMap((event) => {
    const { text, paint: painted } = stateCell(event.state, paint) as Exclude<
      ReturnType<typeof stateCell>,
      string
    >
    const why = toPlainLine(event.detail ?? event.code ?? '')
    const words = `${moment(event.receivedAt, now)} ${toPlainLine(describeWhat(event))}${event.stage ? ` at ${event.stage}` : ''}: ${cut(why, 120)}`
    return [
      ...row(`  ${painted(text)}`, words, columns, 4),
      ...indented(asInvoked(`doorward events show ${toPlainLine(event.id)}`), columns, 4),
    ]
  })
  const shown = section('Last failures', lines, page)
  if (events.length === 0) return shown
  const [newest] = events
  const said = newest && !hasFailed(newest) ? `newest event: ${newestWords(newest, now)}; ` : ''
  return [...shown, '', ...wrapWords(`${said}all events: ${asInvoked('doorward events')}`, columns)]
}

/** `done at /webhook/github, 3 min ago` */
const newestWords = (event: EventRecord, now: Date): string =>
  `${event.state} at ${cut(toPlainLine(describeWhat(event)), mostOfPath)}, ${ago(event.receivedAt, now)}`

const ago = (time: string, now: Date): string =>
  `${roughly(Math.max(0, now.getTime() - Date.parse(time)))} ago`

const problems = ({ problems: all }: Status, page: Page): string[] => {
  const { columns, paint } = page
  const shown = all.slice(0, mostProblems)
  const lines = shown.flatMap(({ detail, hint }, index) => {
    const first = row(`  ${paint('yellow', '!')}`, toPlainLine(detail), columns, 4)
    // Several problems of one file share a hint.
    const isSame = hint === shown[index + 1]?.hint
    return isSame ? first : [...first, ...indented(toPlainLine(asInvoked(hint)), columns, 4)]
  })
  const more = all.length - shown.length
  return section(
    'Problems',
    more === 0 ? lines : [...lines, ...indented(`and ${more} more: doorward doctor`, columns, 2)],
    page,
  )
}

/**
 * Reports whether the daemon runs, where, and whether it is stopping. Throws `daemon-foreign` when another
 * program answers, `daemon-unreachable` when it runs but its address is unknown.
 */
export const showDaemonStatus = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findRunningDaemon(context)
  if (!client) {
    process.exitCode = exitUnreachable
    if (terminal.json) terminal.printJson({ running: false })
    else {
      terminal.print('stopped')
      // Loaded only here: reading the configuration takes longer than all the rest.
      const { portTaken } = await import('./daemon/start.ts')
      terminal.say(`hint: ${(await portTaken(context.home)) ?? 'doorward daemon start'}`)
    }
    return
  }
  const { daemon } = client
  const ending = await describeShutdown(client).finally(client.close)
  if (terminal.json) {
    terminal.printJson({ running: true, ...daemon, ...(ending && { stopping: true }) })
    return
  }
  const since = Date.now() - Date.parse(daemon.startedAt)
  const running = `running: ${daemon.url} (pid ${daemon.pid}, version ${daemon.version}, for ${formatDuration(since)})`
  terminal.print(wrapped(running, terminal.columns))
  if (daemon.publicUrl !== undefined) {
    const [label, words] = publicWords(daemon.publicUrl)
    terminal.print(wrapped(`${`${label}:`.padEnd(8)} ${words}`, terminal.columns))
  }
  if (ending) terminal.print(`ending:  ${ending}`)
}

/** A busy daemon may not answer: then nothing is printed about a shutdown. */
const describeShutdown = async (client: Client): Promise<string | undefined> => {
  const status = client.get<Status>('/status', { timeoutMs: 3000 })
  return status.then(endingWords).catch(() => undefined)
}
