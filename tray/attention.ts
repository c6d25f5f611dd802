import type { ProviderSummary, Status } from '../shared/api/api.ts'
import { describeWhat } from '../shared/event-stages.ts'
import { findTokenFileProblem, providerToLogIn } from '../shared/client/discovery.ts'
import type { Action } from './view.ts'
import {
  canWait,
  describeProblem,
  describeReason,
  findConfigFile,
  getFix,
  providerTitle,
} from './wording.ts'
import { type View, newestFirst } from './view.ts'

/** Something the user should do, and the action that a click performs; only urgent ones change the icon. */
export type Attention = { readonly text: string; readonly urgent: boolean; readonly action: Action }

/** What needs the user; without a connection, the file that keeps the daemon from starting. */
export const findAttention = ({ daemon }: View): Attention[] => {
  if (daemon.state === 'connected') return findStatusAttention(daemon.status)
  const file = daemon.state === 'unreachable' ? findConfigFile(daemon.about) : undefined
  if (file === undefined) return []
  const action = { do: 'open-configuration', file } as const
  return [{ text: `Fix ${file}, then start the daemon`, urgent: true, action }]
}

/**
 * What needs the user, most pressing first: urgent problems such as a broken configuration or an unset
 * secret, logins, a failed last run, and then what can wait, such as a webhook without a secret or a
 * daemon of another version.
 */
export const findStatusAttention = (status: Status): Attention[] => {
  const logins = status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => provider)
  const problems = status.problems
    // A login has its own entry.
    .filter((problem) => !logins.includes(providerToLogIn(problem) ?? ''))
    .map((problem) => ({
      text: describeProblem(problem),
      urgent: !canWait(problem),
      action: getFix(problem),
    }))
  return [
    ...approvalAttention(status),
    ...problems.filter(({ urgent }) => urgent),
    ...logins.map((provider) => ({
      text: `${providerTitle(provider)}: log in again`,
      urgent: true,
      action: { do: 'login', provider } as const,
    })),
    ...failedRunAttention(status),
    ...problems.filter(({ urgent }) => !urgent),
  ]
}

const approvalAttention = ({ approvals = [] }: Status): Attention[] =>
  approvals.map((event) => ({
    text: `Waits for you: ${describeWhat(event)}`,
    urgent: true,
    action: { do: 'show-event', id: event.id },
  }))

const failedRunAttention = (status: Status): Attention[] => {
  // An older daemon sends only the newest events, among which the last run may be missing.
  const runs = status.lastRun ? [status.lastRun] : newestFirst(status.events)
  const lastRun = runs.find(({ state }) => ['done', 'failed', 'dropped'].includes(state))
  if (!lastRun || lastRun.state === 'done' || lastRun.code === 'event-cancelled') return []
  return [
    {
      text: `Last run failed: ${describeWhat(lastRun)}, ${describeReason(lastRun)}`,
      urgent: true,
      action: { do: 'show-event', id: lastRun.id },
    },
  ]
}

/** False for an expired token that can be refreshed, and for one whose file cannot be read. */
export const needsLogin = (
  { tokens, problems }: Status,
  { provider, status }: ProviderSummary,
): boolean =>
  findTokenFileProblem(problems, provider) === undefined &&
  (status === 'needs-login' ||
    (status === 'expired' &&
      !tokens.some((token) => token.provider === provider && token.refreshable)))
