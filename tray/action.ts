/** A file of the home that a user edits, by its path in the home. */
export type ConfigFile =
  'config/webhooks.yaml' | 'config/agents.yaml' | 'config/gateway.yaml' | '.env'

/** What a click in the menu or on a notification asks for. */
export type Action =
  | { readonly do: 'login' | 'logout'; readonly provider: string }
  | { readonly do: 'show-event' | 'retry-event' | 'run-event-again'; readonly id: string }
  | { readonly do: 'set-notifications' | 'set-start-at-login'; readonly on: boolean }
  /** Opens the folder, or one file. */
  | { readonly do: 'open-configuration'; readonly file?: ConfigFile }
  /** Opens the page on how to get an OAuth client, for one provider or for any. */
  | { readonly do: 'open-guide'; readonly provider?: string }
  /** Shows in full what a menu row has no room for. */
  | { readonly do: 'explain'; readonly title: string; readonly body: string }
  | {
      readonly do:
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
    case 'show-event':
    case 'retry-event':
    case 'run-event-again':
      return `${action.do} ${action.id}`
    case 'restart-daemon':
    case 'start-daemon':
      return 'daemon'
    case 'show-missed':
    case 'run-missed':
    case 'skip-missed':
      return 'missed'
    case 'explain':
      return `explain ${action.title} ${action.body}`
    case 'set-notifications':
    case 'set-start-at-login':
    case 'open-configuration':
    case 'open-guide':
    case 'open-logs':
    case 'copy-diagnostics':
    case 'quit':
    case 'stop-and-quit':
      return action.do
  }
}
