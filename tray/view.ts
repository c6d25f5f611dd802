import type { EventRecord, Status } from '../shared/api/api.ts'
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
  /** The same for schedules; without one there is no menu of them. */
  readonly scheduleRows: number
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

/** More schedules have no row: doorward schedule list shows all. */
export const maxScheduleRows = 12

export const initialOwnState: OwnState = {
  notifications: true,
  logins: new Map(),
  inProgress: new Set(),
}

export const newestFirst = (events: readonly EventRecord[]): EventRecord[] =>
  [...events].sort((a, b) => Date.parse(b.receivedAt) - Date.parse(a.receivedAt))

/** A file of the home that a user edits, by its path in the home. */
export type ConfigFile =
  | 'config/webhooks.yaml'
  | 'config/agents.yaml'
  | 'config/gateway.yaml'
  | 'config/schedules.yaml'
  | '.env'

/** What a click in the menu or on a notification asks for. */
export type Action =
  | { readonly do: 'login' | 'logout'; readonly provider: string }
  | { readonly do: 'show-event' | 'retry-event' | 'run-event-again'; readonly id: string }
  | { readonly do: 'run-schedule'; readonly name: string }
  /** Answers for an event that waits for an approval. */
  | {
      readonly do: 'approve-event' | 'reject-event'
      readonly id: string
      /** The digest of the answer that the note has shown. */
      readonly digest: string
    }
  /** Opens what an event has made or is about; its own page where that cannot be opened. */
  | { readonly do: 'open-page'; readonly id: string; readonly url: string }
  | { readonly do: 'set-notifications' | 'set-start-at-login'; readonly on: boolean }
  /** Opens the folder, or one file. */
  | { readonly do: 'open-configuration'; readonly file?: ConfigFile }
  /** Opens the page on how to get an OAuth client, for one provider or for any. */
  | { readonly do: 'open-guide'; readonly provider?: string }
  /** Shows in full what a menu row has no room for. */
  | { readonly do: 'explain'; readonly title: string; readonly body: string }
  | {
      readonly do:
        /** The page of doorward. */
        | 'open-doorward'
        | 'open-logs'
        /** Deliveries that did not arrive. */
        | 'show-missed'
        | 'run-missed'
        | 'skip-missed'
        | 'copy-diagnostics'
        | 'restart-daemon'
        | 'start-daemon'
        | 'quit'
        | 'stop-and-quit'
    }

/** Identifies an action and its object: actions with the same key never run at the same time. */
export const toActionKey = (action: Action): string => {
  switch (action.do) {
    case 'login':
    case 'logout':
      return `account ${action.provider}`
    case 'approve-event':
    case 'reject-event':
      return `answer ${action.id}`
    case 'show-event':
    case 'retry-event':
    case 'run-event-again':
      return `${action.do} ${action.id}`
    case 'run-schedule':
      return `${action.do} ${action.name}`
    case 'restart-daemon':
    case 'start-daemon':
      return 'daemon'
    case 'show-missed':
    case 'run-missed':
    case 'skip-missed':
      return 'missed'
    case 'open-page':
      return `open-page ${action.id} ${action.url}`
    case 'explain':
      return `explain ${action.title} ${action.body}`
    case 'set-notifications':
    case 'set-start-at-login':
    case 'open-configuration':
    case 'open-guide':
    case 'open-doorward':
    case 'open-logs':
    case 'copy-diagnostics':
    case 'quit':
    case 'stop-and-quit':
      return action.do
  }
}
