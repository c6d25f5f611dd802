import type { EventRecord, Status } from '../shared/api.ts'

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
  /** How many rows the menu has for accounts; never fewer than before, as one that is shown stays. */
  readonly accountRows: number
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

/** Rows for accounts at the start: three providers are built in, and few people add as many. */
export const fewestAccountRows = 6

/** Of a tray that has just started. */
export const freshState: OwnState = {
  notifications: true,
  logins: new Map(),
  underWay: new Set(),
}

/** Newest first, whatever order they came in. */
export const newestFirst = (events: readonly EventRecord[]): EventRecord[] =>
  [...events].sort((a, b) => Date.parse(b.receivedAt) - Date.parse(a.receivedAt))
