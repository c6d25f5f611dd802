import type { EventRecord, ProviderSummary, Status } from '../shared/api.ts'
import { labelOf } from './label.ts'
import {
  type View,
  nameOfEvent,
  needsOf,
  newestFirst,
  reasonOf,
  timeOf,
  upperFirst,
} from './view.ts'

/** What a click asks for. */
export type Action =
  | { readonly do: 'show-event'; readonly id: string }
  | { readonly do: 'open-configuration' | 'open-logs' | 'quit' | 'stop-and-quit' }

/** One row. Without `action` and `rows` it is for reading only. */
export type Row = {
  readonly text: string
  readonly action?: Action
  readonly rows?: readonly Row[]
  readonly hidden?: boolean
  readonly separator?: boolean
}

/*
 * The tree of a running menu cannot grow, and on Linux a row that appears in an open submenu breaks
 * its layout. So the menu has the same rows for every view; they change their text only.
 */
const recentRows = 10
const accountRows = 20
const separator: Row = { text: '', separator: true }

/** The whole menu for a view, always with the same number of rows in the same places. */
export const menu = (view: View): Row[] => {
  const status = view.daemon.state === 'connected' ? view.daemon.status : undefined
  const needs = status ? needsOf(status) : []
  return [
    { text: labelOf(statusLine(view)) },
    needs[0]
      ? { text: labelOf(`! ${needs[0].text}${more(needs.length - 1)}`) }
      : { text: '', hidden: true },
    separator,
    { text: 'Accounts', rows: accounts(status) },
    { text: 'Recent events', rows: recent(view, status) },
    separator,
    { text: 'Open configuration', action: { do: 'open-configuration' } },
    { text: 'Open logs', action: { do: 'open-logs' } },
    separator,
    { text: 'Quit tray', action: { do: 'quit' } },
    status
      ? { text: 'Stop daemon and quit', action: { do: 'stop-and-quit' } }
      : { text: 'Stop daemon and quit' },
  ]
}

/** The first row: in one line, what the daemon is doing. */
export const statusLine = (view: View): string => {
  const { daemon } = view
  if (daemon.state === 'connecting') return 'Looking for the daemon…'
  if (daemon.state === 'unreachable')
    return daemon.lastSeen
      ? `${daemon.reason} · last seen ${timeOf(daemon.lastSeen, view)}`
      : daemon.reason
  const { queue, webhooks } = daemon.status
  const work = [
    ...(queue.running > 0 ? [`${queue.running} running`] : []),
    ...(queue.waiting > 0 ? [`${queue.waiting} waiting`] : []),
  ]
  const enabled = webhooks.filter((webhook) => webhook.enabled).length
  return [
    work.length > 0 ? 'Working' : 'Ready',
    ...(work.length > 0 ? work : [`${enabled} ${enabled === 1 ? 'webhook' : 'webhooks'}`]),
    daemon.status.url.replace(/^http:\/\//, ''),
  ].join(' · ')
}

const more = (count: number): string => (count > 0 ? ` (and ${count} more)` : '')

const accounts = (status: Status | undefined): Row[] => {
  const rows = (status?.providers ?? []).slice(0, accountRows).map((provider) => ({
    text: labelOf(accountLine(provider)),
  }))
  const shown = rows.length > 0 ? rows : [{ text: '—' }]
  return padded(shown, accountRows, { text: '', hidden: true })
}

const accountLine = ({ provider, status, account }: ProviderSummary): string => {
  const name = upperFirst(provider)
  const who = account ? `${name}: ${account.name}` : name
  const lines: Record<typeof status, string> = {
    ok: `✓ ${who}`,
    expired: `○ ${who}, token expired`,
    'needs-login': `! ${who}, log in again`,
    'not-logged-in': `○ ${name}, not logged in`,
  }
  return lines[status]
}

const recent = (view: View, status: Status | undefined): Row[] => {
  const rows = newestFirst(status?.events ?? [])
    .slice(0, recentRows)
    .map((event): Row => ({
      text: labelOf(eventLine(event, view)),
      action: { do: 'show-event', id: event.id },
    }))
  // Wide, because an open menu keeps the width it was opened with.
  return padded(rows, recentRows, { text: `—${'\u2003'.repeat(rows.length > 0 ? 0 : 20)}` })
}

const marks: Readonly<Record<EventRecord['state'], string>> = {
  accepted: '○',
  queued: '○',
  running: '●',
  delivering: '●',
  done: '✓',
  failed: '!',
  dropped: '!',
  rejected: '×',
  filtered: '–',
  duplicate: '–',
}

const eventLine = (event: EventRecord, view: View): string =>
  `${timeOf(event.receivedAt, view)}  ${marks[event.state]} ${nameOfEvent(event)}: ${outcome(event)}`

const outcome = (event: EventRecord): string => {
  if (event.state === 'done') return event.resultPreview?.trim() || 'done'
  const unwell = ['failed', 'dropped', 'rejected'].includes(event.state)
  return unwell ? `${event.state}, ${reasonOf(event)}` : event.state
}

const padded = (rows: readonly Row[], length: number, filler: Row): Row[] => [
  ...rows,
  ...Array.from({ length: Math.max(0, length - rows.length) }, () => filler),
]
