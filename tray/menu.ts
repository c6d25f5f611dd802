import type { EventRecord, Machine, ProviderSummary, Status } from '../shared/api/api.ts'
import type { ScheduleSummary } from '../shared/api/schedules.ts'
import { findTokenFileProblem } from '../shared/client/discovery.ts'
import { type Action, toActionKey, type OwnState, type View, newestFirst } from './view.ts'
import { toLabel, maxLabelLength } from './text.ts'
import { describeMade, describeToday, describeWhat } from '../shared/event-stages.ts'
import { getFix, providerTitle, describeReason, formatTime, toOpenAction } from './wording.ts'
import { needsLogin, findStatusAttention, findAttention } from './attention.ts'

/** One row. Without `action` and `rows` it cannot be clicked. */
export type Row = {
  readonly text: string
  readonly action?: Action
  readonly rows?: readonly Row[]
  readonly hidden?: boolean
  readonly separator?: boolean
}

/*
 * The tree of a running menu cannot grow, and on Linux a row that appears in an open submenu breaks its
 * layout. So every view has the same rows and changes only their text. When there are more providers or
 * schedules than rows for them, the tray program is restarted with a larger menu.
 */
const recentRows = 10
const separator: Row = { text: '', separator: true }

/** The whole menu for a view; its shape depends on `accountRows` and `scheduleRows` alone. */
export const menu = (view: View): Row[] => {
  const { daemon, own } = view
  const status = daemon.state === 'connected' ? daemon.status : undefined
  return [
    statusRow(view),
    attentionRow(view),
    machinesRow(status),
    separator,
    { text: 'Accounts', rows: accounts(view, status) },
    { text: 'Recent events', rows: recent(view, status) },
    ...(view.scheduleRows > 0 ? [{ text: 'Schedules', rows: schedules(view, status) }] : []),
    separator,
    {
      text: toggleText('Notifications', own.notifications),
      action: { do: 'set-notifications', on: !own.notifications },
    },
    own.startAtLogin === undefined
      ? { text: toggleText('Start at login', false) }
      : {
          text: toggleText('Start at login', own.startAtLogin),
          action: { do: 'set-start-at-login', on: !own.startAtLogin },
        },
    separator,
    { text: 'Open configuration', action: { do: 'open-configuration' } },
    { text: 'Open logs', action: { do: 'open-logs' } },
    progressRow(own, 'Copy diagnostics', 'Collecting diagnostics…', { do: 'copy-diagnostics' }),
    daemonRow(view),
    separator,
    { text: 'Quit tray', action: { do: 'quit' } },
    progressRow(own, 'Stop daemon and quit', 'Stopping the daemon…', { do: 'stop-and-quit' }),
  ]
}

const attentionRow = (view: View): Row => {
  const [first, ...others] = findAttention(view)
  if (!first) return { text: '', hidden: true }
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  const text = toLabel(`! ${first.text}`, maxLabelLength - more.length)
  return { text: `${text}${more}`, action: first.action }
}

/** Who shares the queue; hidden for a machine that is alone. */
const machinesRow = (status: Status | undefined): Row => {
  if (!status?.broker) return { text: '', hidden: true }
  const { broker, machines = [] } = status
  const words = machines.map(describeMachine)
  const first = `${machines.length} ${machines.length === 1 ? 'machine' : 'machines'}`
  const text = broker.connected ? `${first}: ${words.join(', ')}` : 'Machines: no broker'
  return { text: toLabel(text) }
}

const describeMachine = ({ name, role, agents }: Machine): string => {
  const running = agents.reduce((sum, agent) => sum + agent.running, 0)
  return running > 0
    ? `${name} ${running} running`
    : `${name} ${role === 'receiver' ? role : 'idle'}`
}

/** Draws the check mark as text, since that of the tray library is broken; off is a space as wide. */
const toggleText = (text: string, on: boolean): string => `${on ? '✓' : '\u2003'} ${text}`

/** A row that shows another text while its action is in progress, and cannot be clicked then. */
const progressRow = (own: OwnState, text: string, busyText: string, action: Action): Row =>
  own.inProgress.has(toActionKey(action)) ? { text: busyText } : { text, action }

const daemonRow = ({ daemon, own }: View): Row => {
  if (daemon.state === 'connected')
    return progressRow(own, 'Restart daemon', 'Restarting the daemon…', { do: 'restart-daemon' })
  if (daemon.state === 'connecting') return { text: 'Start daemon' }
  return progressRow(own, 'Start daemon', 'Starting the daemon…', { do: 'start-daemon' })
}

/** The first row: what the daemon is doing; a click opens the page. */
const statusRow = (view: View): Row => {
  const text = toLabel(statusLine(view))
  return view.daemon.state === 'connected' ? { text, action: { do: 'open-doorward' } } : { text }
}

/** The text of the first row. */
export const statusLine = (view: View): string => {
  const { daemon } = view
  if (daemon.state === 'connecting') return 'Looking for the daemon…'
  if (daemon.state === 'unreachable')
    return daemon.lastSeen
      ? `${daemon.reason} · last seen ${formatTime(daemon.lastSeen, view)}`
      : daemon.reason
  const { queue, webhooks, today } = daemon.status
  const work = [
    ...(queue.running > 0 ? [`${queue.running} running`] : []),
    ...(queue.waiting > 0 ? [`${queue.waiting} waiting`] : []),
  ]
  const enabled = webhooks.filter((webhook) => webhook.enabled).length
  const { trouble } = view.own
  return [
    describeState(daemon.status, work.length > 0),
    ...(work.length > 0 ? work : [`${enabled} ${enabled === 1 ? 'webhook' : 'webhooks'}`]),
    ...(today ? [describeToday(today)] : []),
    trouble ?? daemon.status.url.replace(/^http:\/\//, ''),
  ].join(' · ')
}

/** The same as the icon; only a daemon that stops has no icon of its own. */
const describeState = (status: Status, isWorking: boolean): string => {
  if (status.stopping) return 'Stopping'
  if (findStatusAttention(status).some(({ urgent }) => urgent)) return 'Needs you'
  return isWorking ? 'Working' : 'Ready'
}

const accounts = ({ own, accountRows }: View, status: Status | undefined): Row[] => {
  const rows = status?.providers.map((provider) => accountRow(status, provider, own)) ?? []
  return padded(rows, accountRows)
}

const accountRow = (status: Status, summary: ProviderSummary, own: OwnState): Row => {
  const { provider, account } = summary
  const name = providerTitle(provider)
  const login: Action = { do: 'login', provider }
  const waiting = own.logins.get(provider)
  if (waiting?.userCode !== undefined)
    return {
      text: withSuffix(`… ${name}`, `: enter ${waiting.userCode} in the browser`),
      action: login,
    }
  if (waiting)
    return { text: withSuffix(`… ${name}`, ': waiting for you in the browser'), action: login }
  const who = account ? `${name} · ${account.name}` : name
  if (own.inProgress.has(toActionKey(login)))
    return { text: withSuffix(`… ${who}`, ': one moment') }
  if (summary.status === 'not-logged-in')
    return { text: withSuffix(`○ ${name}`, ': Log in…'), action: login }
  const unread = findTokenFileProblem(status.problems, provider)
  if (unread)
    return { text: withSuffix(`! ${who}`, ': token file cannot be read…'), action: getFix(unread) }
  if (needsLogin(status, summary))
    return { text: withSuffix(`! ${who}`, ': Log in again…'), action: login }
  return { text: withSuffix(`✓ ${who}`, ': Log out'), action: { do: 'logout', provider } }
}

/** Shortens the name rather than the suffix, which says what a click does. */
const withSuffix = (name: string, suffix: string): string => {
  const end = toLabel(suffix, maxLabelLength / 2)
  return `${toLabel(name, maxLabelLength - Array.from(end).length)}${end}`
}

const recent = (view: View, status: Status | undefined): Row[] => {
  const rows = newestFirst(status?.events ?? [])
    .slice(0, recentRows)
    .map((event): Row => ({
      text: toLabel(eventLine(event, view)),
      action: toOpenAction(event),
    }))
  return padded(rows, recentRows, status && 'No events yet')
}

const marks: Readonly<Record<EventRecord['state'], string>> = {
  accepted: '○',
  queued: '○',
  running: '●',
  waiting: '?',
  delivering: '●',
  done: '✓',
  failed: '!',
  dropped: '!',
  rejected: '×',
  filtered: '–',
  duplicate: '–',
  declined: '–',
  expired: '!',
}

/** The state of the last run, and when the next one is due; a click runs it now. */
const schedules = (view: View, status: Status | undefined): Row[] => {
  const { scheduleRows, own } = view
  const rows = (status?.schedules ?? []).slice(0, scheduleRows).map((schedule): Row => {
    const { name, lastState, enabled } = schedule
    const action: Action = { do: 'run-schedule', name }
    const what = `${marks[lastState ?? 'accepted']} ${name} · ${describeNext(schedule, view)}`
    if (!enabled) return { text: toLabel(what) }
    return own.inProgress.has(toActionKey(action))
      ? { text: withSuffix(what, ': one moment') }
      : { text: withSuffix(what, ': Run now'), action }
  })
  return padded(rows, scheduleRows)
}

const describeNext = (schedule: ScheduleSummary, view: View): string => {
  const { enabled, missed, paused, nextRuns } = schedule
  const [next] = nextRuns
  if (!enabled) return 'off'
  if (missed) return `${missed.count} missed`
  if (paused) return 'paused'
  if (next === undefined) return 'over'
  const day = formatTime(next, view)
  const clock = formatTime(next, { ...view, now: Date.parse(next) })
  return day === clock ? clock : `${day} ${clock}`
}

const eventLine = (event: EventRecord, view: View): string =>
  `${formatTime(event.receivedAt, view)}  ${marks[event.state]} ${describeWhat(event)}: ${outcome(event)}`

const outcome = (event: EventRecord): string => {
  if (event.state === 'done') return describeMade(event) ?? (event.resultPreview?.trim() || 'done')
  const hasFailed = ['failed', 'dropped', 'rejected'].includes(event.state)
  return hasFailed ? `${event.state}, ${describeReason(event)}` : event.state
}

/** Fills up to `length` rows; without any row, the first one shows `emptyText`. */
const padded = (rows: readonly Row[], length: number, emptyText = '—'): Row[] => {
  if (rows.length > 0)
    return [...rows, ...Array.from({ length: length - rows.length }, () => ({ text: '—' }))]
  // Wide, because an open menu keeps its first width.
  return padded([{ text: `${emptyText}${'\u2003'.repeat(20)}` }], length)
}
