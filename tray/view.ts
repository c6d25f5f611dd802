import type { EventRecord, Status } from '../shared/api.ts'
import type { About } from '../shared/errors.ts'

/** What the tray knows at one moment; everything it shows is derived from this. */
export type View = {
  readonly daemon:
    | { readonly state: 'connecting' }
    | { readonly state: 'connected'; readonly status: Status }
    /** `reason` is a whole line for the menu; `lastSeen` is ISO 8601. */
    | {
        readonly state: 'unreachable'
        readonly reason: string
        /** What keeps the daemon from starting. */
        readonly about?: About
        readonly lastSeen?: string
      }
  /** Milliseconds since 1970. */
  readonly now: number
  /** Minutes that the local clock is ahead of UTC. */
  readonly utcOffset: number
  /** How many rows the menu has for accounts; never decreases, as a running menu cannot lose rows. */
  readonly accountRows: number
  readonly own: OwnState
}

/** The tray's own state: its two switches, and what actions have started. */
export type OwnState = {
  readonly notifications: boolean
  /** Undefined until it is known, and where it cannot be known. */
  readonly startAtLogin?: boolean
  /** Logins that wait for their user, by provider. */
  readonly logins: ReadonlyMap<string, WaitingLogin>
  /** The keys (`toActionKey`) of the actions in progress. */
  readonly inProgress: ReadonlySet<string>
  /** Why notifications do not appear, in a few words. */
  readonly trouble?: string
}

/** `userCode` is the code to enter at the provider, where the login has one. */
export type WaitingLogin = { readonly userCode?: string }

/** Account rows at the start: three providers are built in, and few people add as many. */
export const minAccountRows = 6

export const initialOwnState: OwnState = {
  notifications: true,
  logins: new Map(),
  inProgress: new Set(),
}

export const newestFirst = (events: readonly EventRecord[]): EventRecord[] =>
  [...events].sort((a, b) => Date.parse(b.receivedAt) - Date.parse(a.receivedAt))
