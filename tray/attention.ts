import type { ProviderSummary, Status } from '../shared/api.ts'
import { findTokenFileProblem } from '../shared/client/discovery.ts'
import type { Action } from './action.ts'
import {
  findBrokenFile,
  canWait,
  getFix,
  getEventName,
  providerTitle,
  providerToLogIn,
  describeReason,
  toSentence,
} from './wording.ts'
import { type View, newestFirst } from './view.ts'

/** Something a person should do, and what a click on it does; only what is urgent changes the icon. */
export type Attention = { readonly text: string; readonly urgent: boolean; readonly action: Action }

/** What needs the user, for a whole view: of a daemon that is away, the file that keeps it from starting. */
export const findAttention = ({ daemon }: View): Attention[] => {
  if (daemon.state === 'connected') return findStatusAttention(daemon.status)
  const file = daemon.state === 'unreachable' ? findBrokenFile(causeIn(daemon.reason)) : undefined
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
 * is needed, the newest finished run failed; last, what can wait, such as a webhook that takes unsigned
 * deliveries or a daemon of another version.
 */
export const findStatusAttention = (status: Status): Attention[] => {
  const logins = status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => provider)
  const problems = status.problems
    // Who has to log in is asked for it once.
    .filter(({ hint }) => !logins.includes(providerToLogIn(hint) ?? ''))
    .map((problem) => ({
      text: toSentence(problem.detail),
      urgent: !canWait(problem),
      action: getFix(problem),
    }))
  // An older daemon tells no more than the newest events, out of which others may have pushed it.
  const runs = status.lastRun ? [status.lastRun] : newestFirst(status.events)
  const lastRun = runs.find(({ state }) => ['done', 'failed', 'dropped'].includes(state))
  return [
    ...problems.filter(({ urgent }) => urgent),
    ...logins.map((provider): Attention => ({
      text: `${providerTitle(provider)}: log in again`,
      urgent: true,
      action: { do: 'login', provider },
    })),
    ...(lastRun && lastRun.state !== 'done'
      ? [
          {
            text: `Last run failed: ${getEventName(lastRun)}, ${describeReason(lastRun)}`,
            urgent: true,
            action: { do: 'show-event', id: lastRun.id } as const,
          },
        ]
      : []),
    ...problems.filter(({ urgent }) => !urgent),
  ]
}

/** An expired token that can be refreshed needs nobody, and one whose file is not read no login. */
export const needsLogin = (
  { tokens, problems }: Status,
  { provider, status }: ProviderSummary,
): boolean =>
  findTokenFileProblem(problems, provider) === undefined &&
  (status === 'needs-login' ||
    (status === 'expired' &&
      !tokens.some((token) => token.provider === provider && token.refreshable)))
