import type { EventRecord, ProviderSummary, Status } from '../shared/api.ts'
import type { Action } from './action.ts'
import { labelOf } from './label.ts'
import { brokenFile, inHome, mendOf, providerToLogIn } from './mend.ts'

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
  readonly own: OwnState
}

/** What the tray knows of itself: its two switches, and what clicks have set going. */
export type OwnState = {
  readonly notifications: boolean
  /** Undefined until it is known, and where it cannot be. */
  readonly startAtLogin?: boolean
  /** Logins that wait for their person, by provider. */
  readonly logins: ReadonlyMap<string, WaitingLogin>
  /** The actions under way, by `keyOfAction`. */
  readonly underWay: ReadonlySet<string>
  /** A fault of the desktop that has to be told, in one line. */
  readonly notice?: string
}

/** With the code to enter at the provider, where that is how one logs in. */
export type WaitingLogin = { readonly userCode?: string }

/** Of a tray that has just started. */
export const freshState: OwnState = {
  notifications: true,
  logins: new Map(),
  underWay: new Set(),
}

/** What the icon can say. */
export type IconName = 'idle' | 'running' | 'needs-you' | 'unreachable'

/** The icon for a view. A need outlasts a run, so it wins over one. */
export const iconOf = ({ daemon }: View): IconName => {
  if (daemon.state !== 'connected') return 'unreachable'
  if (needsOf(daemon.status).some(({ urgent }) => urgent)) return 'needs-you'
  return daemon.status.queue.running > 0 ? 'running' : 'idle'
}

/** Something a person should do, and what a click on it does; only what is urgent changes the icon. */
export type Need = { readonly text: string; readonly urgent: boolean; readonly action: Action }

/** What needs the user, for a whole view: of a daemon that is away, the file that keeps it from starting. */
export const needsOfView = ({ daemon }: View): Need[] => {
  if (daemon.state === 'connected') return needsOf(daemon.status)
  const file = daemon.state === 'unreachable' ? brokenFile(causeIn(daemon.reason)) : undefined
  if (file === undefined) return []
  return [
    {
      text: `Mend ${file}, then start the daemon`,
      urgent: true,
      action: { do: 'open-configuration', file },
    },
  ]
}

const causeIn = (reason: string): string => reason.replace(/^[^:]*: /, '')

/**
 * What needs the user, most pressing first: the configuration is broken or a secret is unset, a login
 * is needed, the newest finished run failed; last, what can wait: a webhook that takes unsigned
 * deliveries, tokens that a provider has still to revoke, a daemon of another version.
 */
export const needsOf = (status: Status): Need[] => {
  const logins = status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => provider)
  const problems = status.problems
    // Who has to log in is asked for it once.
    .filter(({ hint }) => !logins.includes(providerToLogIn(hint) ?? ''))
    .map((problem) => ({
      text: upperFirst(inHome(problem.detail)),
      urgent: !['webhook-unsigned', 'revocation-pending', 'version-differs'].includes(problem.code),
      action: mendOf(problem),
    }))
  const lastRun = newestFirst(status.events).find(({ state }) =>
    ['done', 'failed', 'dropped'].includes(state),
  )
  return [
    ...problems.filter(({ urgent }) => urgent),
    ...logins.map((provider): Need => ({
      text: `${providerTitle(provider)}: log in again`,
      urgent: true,
      action: { do: 'login', provider },
    })),
    ...(lastRun && lastRun.state !== 'done'
      ? [
          {
            text: `Last run failed: ${nameOfEvent(lastRun)}, ${reasonOf(lastRun)}`,
            urgent: true,
            action: { do: 'show-event', id: lastRun.id } as const,
          },
        ]
      : []),
    ...problems.filter(({ urgent }) => !urgent),
  ]
}

/** An expired token that can be refreshed needs nobody. */
export const needsLogin = ({ tokens }: Status, { provider, status }: ProviderSummary): boolean =>
  status === 'needs-login' ||
  (status === 'expired' &&
    !tokens.some((token) => token.provider === provider && token.refreshable))

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

/** A provider as people write it. */
export const providerTitle = (provider: string): string =>
  ({ github: 'GitHub', gitlab: 'GitLab' })[provider] ?? upperFirst(provider)
