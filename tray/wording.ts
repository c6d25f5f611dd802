import type { EventRecord, StatusProblem } from '../shared/api/api.ts'
import { providerToLogIn } from '../shared/client/discovery.ts'
import type { About } from '../shared/errors.ts'
import { isSafeToOpen } from '../shared/net.ts'
import type { Action, ConfigFile, View } from './view.ts'
import { toLabel } from './text.ts'

/*
 * Names and phrases that menu and notifications share.
 */

/** Why an event failed, in one line. */
export const describeReason = ({ detail, code, stage, state }: EventRecord): string =>
  toLabel(detail ?? code ?? (stage ? `failed at ${stage}` : state), 200)

/** What a click on an event opens: after a success what was made, else what it is about; otherwise its own page. */
export const toOpenAction = ({ id, state, links = [], subject }: EventRecord): Action => {
  const pages = state === 'done' ? [...links.map(({ url }) => url), subject?.url] : []
  const url = pages.find((page) => page !== undefined && isSafeToOpen(page))
  return url === undefined ? { do: 'show-event', id } : { do: 'open-page', id, url }
}

/** `12:04` today, `11-20` on another day, in the local time of the view. */
export const formatTime = (iso: string, { now, utcOffset }: View): string => {
  const local = (time: number) => new Date(time + utcOffset * 60_000).toISOString()
  const then = local(Date.parse(iso))
  return then.slice(0, 10) === local(now).slice(0, 10) ? then.slice(11, 16) : then.slice(5, 10)
}

export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A provider in its usual spelling, with the name of the account: `GitHub (work)` for `github@work`. */
export const providerTitle = (login: string): string => {
  const [provider = '', account] = login.split('@')
  const title = { github: 'GitHub', gitlab: 'GitLab' }[provider] ?? upperFirst(provider)
  return account === undefined ? title : `${title} (${account})`
}

/** A problem with a capital; one of a file begins with the path of the file. */
export const describeProblem = ({
  detail,
  about,
}: Pick<StatusProblem, 'detail' | 'about'>): string =>
  about?.file === undefined ? upperFirst(detail) : detail

const webhooks: ConfigFile = 'config/webhooks.yaml'
const agents: ConfigFile = 'config/agents.yaml'
const gateway: ConfigFile = 'config/gateway.yaml'
const schedules: ConfigFile = 'config/schedules.yaml'

/** The file in which each warning about a valid configuration is fixed. */
const files: Readonly<Record<string, ConfigFile>> = {
  'secret-unset': '.env',
  'secret-partly-unset': '.env',
  'secret-unusable': '.env',
  'secret-shape': '.env',
  'agent-key-unset': '.env',
  'target-secret-unset': '.env',
  'target-secret-wrong': '.env',
  'webhook-unsigned': webhooks,
  'scheme-differs': webhooks,
  'placeholder-unfinished': webhooks,
  'filter-path-prefix': webhooks,
  'filter-path-header': webhooks,
  'filter-value-literal': webhooks,
  'filter-value-boolean': webhooks,
  'event-unknown': webhooks,
  'over-budget': webhooks,
  'rules-equal': webhooks,
  'dangerous-combination': agents,
  'target-not-encrypted': gateway,
  'provider-incomplete': gateway,
  'body-limit-too-large': gateway,
}

/** The action that fixes a problem, or else shows in full what to do. */
export const getFix = (problem: StatusProblem): Action => {
  const { code, detail, hint, about } = problem
  const provider = providerToLogIn(problem)
  if (provider !== undefined) return { do: 'login', provider }
  if (code === 'restart-needed' || code === 'config-not-watched') return { do: 'restart-daemon' }
  if (code === 'deliveries-missed') return { do: 'show-missed' }
  const file = files[code] ?? findConfigFile(about)
  if (file !== undefined) return { do: 'open-configuration', file }
  return { do: 'explain', title: detail, body: hint }
}

/** The configuration file that has to be fixed. */
export const findConfigFile = (about: About | undefined): ConfigFile | undefined =>
  [webhooks, agents, gateway, schedules].find((file) => file === about?.file)

const minorCodes: ReadonlySet<string> = new Set([
  'approval-unasked',
  'approve-by-no-one',
  'approve-without-check',
  'approve-without-effect',
  'approve-without-source',
  'body-limit-too-large',
  'budget-not-counted',
  'budget-used',
  'config-not-watched',
  'dangerous-combination',
  'deliveries-missed',
  'deliveries-unread',
  'event-unknown',
  'filter-path-header',
  'filter-path-prefix',
  'filter-value-boolean',
  'filter-value-literal',
  'over-budget',
  'placeholder-unfinished',
  'provider-incomplete',
  'restart-needed',
  'revocation-pending',
  'rules-equal',
  'schedule-missed',
  'schedule-often',
  'schedule-past',
  'scheme-differs',
  'secret-shape',
  'target-not-encrypted',
  'version-differs',
  'webhook-unsigned',
])

/** True for a problem that leaves the icon alone. An unknown one, of a newer daemon, does not. */
export const canWait = ({ code }: { readonly code: string }): boolean => minorCodes.has(code)
