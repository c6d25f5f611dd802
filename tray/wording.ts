import type { EventRecord, StatusProblem } from '../shared/api.ts'
import type { Action, ConfigFile } from './action.ts'
import { toLabel } from './text.ts'
import type { View } from './view.ts'

/*
 * Names and phrases that menu and notifications share.
 */

/** Why an event failed, in one line. */
export const describeReason = ({ detail, code, stage, state }: EventRecord): string =>
  toLabel(detail ?? code ?? (stage ? `failed at ${stage}` : state), 200)

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

/** A line of the daemon with a capital; one that begins with the path of a file only loses the home. */
export const toSentence = (line: string): string =>
  findBrokenFile(line) === undefined ? upperFirst(line) : inHome(line)

const webhooks: ConfigFile = 'config/webhooks.yaml'
const agents: ConfigFile = 'config/agents.yaml'
const gateway: ConfigFile = 'config/gateway.yaml'

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
  'filter-path-dots': webhooks,
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

const restart = 'doorward daemon restart'

/** The action that fixes a problem, or else shows in full what to do. */
export const getFix = ({ code, detail, hint }: StatusProblem): Action => {
  const provider = providerToLogIn(hint)
  if (provider !== undefined) return { do: 'login', provider }
  if (code === 'restart-needed' || code === 'config-not-watched' || hint === restart)
    return { do: 'restart-daemon' }
  if (code === 'deliveries-missed') return { do: 'show-missed' }
  const file = files[code] ?? findBrokenFile(detail)
  if (file !== undefined) return { do: 'open-configuration', file }
  return { do: 'explain', title: detail, body: hint }
}

/** The provider of a hint that is only `doorward oauth login NAME`. */
export const providerToLogIn = (hint: string): string | undefined =>
  /^doorward oauth login ([\w.@-]+)$/.exec(hint)?.[1]

/** The file that a line begins with, as in `/home/ada/.doorward/config/agents.yaml:4:5 …`. */
export const findBrokenFile = (line: string): ConfigFile | undefined =>
  [webhooks, agents, gateway].find((file) => inHome(line).startsWith(`${file}:`))

/** Removes the path of the home, for which a row has no room. */
const inHome = (line: string): string =>
  line.replace(/^.*?[\\/]config[\\/](?=(?:webhooks|agents|gateway)\.yaml:\d)/, 'config/')

const minorCodes: ReadonlySet<string> = new Set([
  'body-limit-too-large',
  'config-not-watched',
  'dangerous-combination',
  'deliveries-missed',
  'deliveries-unread',
  'event-unknown',
  'filter-path-dots',
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
  'scheme-differs',
  'secret-shape',
  'target-not-encrypted',
  'version-differs',
  'webhook-unsigned',
])

/** True for a problem that leaves the icon alone. An unknown one, of a newer daemon, does not. */
export const canWait = ({ code }: { readonly code: string }): boolean => minorCodes.has(code)
