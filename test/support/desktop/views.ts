import type {
  ProviderSummary,
  Status,
  StatusProblem,
  WebhookSummary,
} from '../../../shared/api/api.ts'
import { type OwnState, type View, initialOwnState } from '../../../tray/view.ts'
import { statusWith } from '../daemon/fake-daemon.ts'

const at = {
  now: Date.parse('2026-01-02T13:00:00Z'),
  utcOffset: 60,
  accountRows: 6,
  scheduleRows: 0,
  own: initialOwnState,
}
/** The view of a daemon that answers with this status. */
export const connected = (more: Partial<Status> = {}, own: Partial<OwnState> = {}): View => ({
  daemon: { state: 'connected', status: statusWith(more) },
  ...at,
  own: { ...initialOwnState, ...own },
})
/** Of one that does not run any more. */
export const unreachable: View = {
  daemon: { state: 'unreachable', reason: 'Daemon not running', lastSeen: '2026-01-02T12:04:00Z' },
  ...at,
}
/** Of one that could not start. */
export const broken: View = {
  daemon: {
    state: 'unreachable',
    reason: 'Daemon did not start: config/agents.yaml:3:1 agents: not a map',
    about: { file: 'config/agents.yaml' },
  },
  ...at,
}
/** Before anything is known. */
export const connecting: View = { daemon: { state: 'connecting' }, ...at }

/** A provider in this state, logged in to this account. */
export const provider = (
  name: string,
  status: ProviderSummary['status'],
  account?: string,
): ProviderSummary => ({
  provider: name,
  clientKnown: true,
  status,
  account: account === undefined ? null : { id: '1', name: account },
})
/** A problem of a status. */
export const problem = (
  code: string,
  detail: string,
  hint = '',
  about?: StatusProblem['about'],
): StatusProblem => ({ code, detail, hint, about })
/** As much of a webhook as the first row needs. */
export const webhook = (enabled: boolean) => ({ enabled }) as WebhookSummary
