import type { EventRecord, Status } from '../shared/api.ts'
import { labelOf } from './label.ts'

/** What the tray knows at one moment; all it shows is made from this. */
export type View = {
  readonly daemon:
    | { readonly state: 'connecting' }
    | { readonly state: 'connected'; readonly status: Status }
    /** `reason` is a whole line for the menu; `lastSeen` is ISO 8601; `runs`: none can be started. */
    | {
        readonly state: 'unreachable'
        readonly reason: string
        readonly runs?: boolean
        readonly lastSeen?: string
      }
  /** Milliseconds since 1970. */
  readonly now: number
  /** Minutes that the local clock is ahead of UTC. */
  readonly utcOffset: number
}

/** What the icon can say. */
export type IconName = 'idle' | 'running' | 'needs-you' | 'unreachable'

/** The icon for a view. A need outlasts a run, so it wins over one. */
export const iconOf = ({ daemon }: View): IconName => {
  if (daemon.state !== 'connected') return 'unreachable'
  if (needsOf(daemon.status).some(({ urgent }) => urgent)) return 'needs-you'
  return daemon.status.queue.running > 0 ? 'running' : 'idle'
}

/** Something a person should do; only what is urgent changes the icon. */
export type Need = { readonly text: string; readonly urgent: boolean }

/**
 * What needs the user, most pressing first: the configuration is broken or a secret is unset, a login
 * is needed, the newest finished run failed; last, what can wait: a webhook that takes unsigned
 * deliveries, tokens that a provider has still to revoke, a daemon of another version.
 */
export const needsOf = (status: Status): Need[] => {
  const problems = status.problems.map(({ code, detail }) => ({
    text: upperFirst(detail),
    urgent: !['webhook-unsigned', 'revocation-pending', 'version-differs'].includes(code),
  }))
  const lastRun = newestFirst(status.events).find(({ state }) =>
    ['done', 'failed', 'dropped'].includes(state),
  )
  return [
    ...problems.filter(({ urgent }) => urgent),
    ...status.providers
      .filter(({ provider, status: state }) => needsLogin(status, provider, state))
      .map(({ provider }) => ({ text: `${upperFirst(provider)}: log in again`, urgent: true })),
    ...(lastRun && lastRun.state !== 'done'
      ? [{ text: `Last run failed: ${nameOfEvent(lastRun)}, ${reasonOf(lastRun)}`, urgent: true }]
      : []),
    ...problems.filter(({ urgent }) => !urgent),
  ]
}

/** An expired token that can be refreshed needs nobody. */
const needsLogin = (status: Status, provider: string, state: string): boolean =>
  state === 'needs-login' ||
  (state === 'expired' &&
    !status.tokens.some((token) => token.provider === provider && token.refreshable))

/** Newest first, whatever order they came in. */
export const newestFirst = (events: readonly EventRecord[]): EventRecord[] =>
  [...events].sort((a, b) => Date.parse(b.receivedAt) - Date.parse(a.receivedAt))

/** What to call an event: the path of its webhook. */
export const nameOfEvent = ({ webhook, kind }: EventRecord): string => webhook ?? kind

/** Why an event failed, in one line. */
export const reasonOf = ({ detail, code, stage, state }: EventRecord): string =>
  labelOf(detail ?? code ?? (stage ? `failed at ${stage}` : state), 200)

/** `12:04` today, `11-20` on another day, in the local time of the view. */
export const timeOf = (iso: string, { now, utcOffset }: View): string => {
  const local = (time: number) => new Date(time + utcOffset * 60_000).toISOString()
  const then = local(Date.parse(iso))
  return then.slice(0, 10) === local(now).slice(0, 10) ? then.slice(11, 16) : then.slice(5, 10)
}

export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
