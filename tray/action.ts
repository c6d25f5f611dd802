/** A file that a person can mend, by its path in the home. */
export type ConfigFile =
  'config/webhooks.yaml' | 'config/agents.yaml' | 'config/gateway.yaml' | '.env'

/** What a click asks for, in the menu or on a notification. */
export type Action =
  | { readonly do: 'login' | 'logout'; readonly provider: string }
  | { readonly do: 'show-event' | 'retry-event'; readonly id: string }
  | { readonly do: 'set-notifications' | 'set-start-at-login'; readonly on: boolean }
  /** The folder, or one file of the home. */
  | { readonly do: 'open-configuration'; readonly file?: ConfigFile }
  /** How to get an OAuth client; for one provider or for any. */
  | { readonly do: 'open-guide'; readonly provider?: string }
  /** Shows in full what a row had no room for. */
  | { readonly do: 'explain'; readonly title: string; readonly body: string }
  | {
      readonly do:
        | 'open-logs'
        | 'copy-diagnostics'
        | 'restart-daemon'
        | 'start-daemon'
        | 'quit'
        | 'stop-and-quit'
    }

/** Names an action with what it is done to: two with the same key are never under way at once. */
export const toActionKey = (action: Action): string => {
  switch (action.do) {
    case 'login':
    case 'logout':
      // One account does one thing at a time.
      return `account ${action.provider}`
    case 'show-event':
    case 'retry-event':
      return `${action.do} ${action.id}`
    case 'restart-daemon':
    case 'start-daemon':
      return 'daemon'
    case 'quit':
    case 'stop-and-quit':
      return action.do
    case 'explain':
      return `explain ${action.title} ${action.body}`
    case 'set-notifications':
    case 'set-start-at-login':
    case 'open-configuration':
    case 'open-guide':
    case 'open-logs':
    case 'copy-diagnostics':
      return action.do
  }
}
