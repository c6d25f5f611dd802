import type { EventRecord, StatusProblem } from '../shared/api.ts'
import type { Action, ConfigFile } from './action.ts'
import { toLabel } from './text.ts'
import type { View } from './view.ts'

/*
 * How things are called wherever the tray speaks of them, in the menu and in notifications.
 */

/** What to call an event: the path of its webhook. */
export const getEventName = ({ webhook, kind }: EventRecord): string => webhook ?? kind

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

/** A provider as people write it. */
export const providerTitle = (provider: string): string =>
  ({ github: 'GitHub', gitlab: 'GitLab' })[provider] ?? upperFirst(provider)

/** A line of the daemon as a sentence. One that begins with the place of a file is a name, and stays. */
export const toSentence = (line: string): string =>
  findBrokenFile(line) === undefined ? upperFirst(line) : inHome(line)

const webhooks: ConfigFile = 'config/webhooks.yaml'
const agents: ConfigFile = 'config/agents.yaml'
const gateway: ConfigFile = 'config/gateway.yaml'

/** Where each problem of a configuration that can be used is mended. */
const fileOfCode: Readonly<Record<string, ConfigFile>> = {
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
  'dangerous-combination': agents,
  'target-not-encrypted': gateway,
  'provider-incomplete': gateway,
  'body-limit-too-large': gateway,
}

const restart = 'doorward daemon restart'

/** What a click on a problem does: the very thing that mends it, or else it says in full what to do. */
export const getFix = ({ code, detail, hint }: StatusProblem): Action => {
  const provider = providerToLogIn(hint)
  if (provider !== undefined) return { do: 'login', provider }
  if (code === 'restart-needed' || code === 'config-not-watched' || hint === restart)
    return { do: 'restart-daemon' }
  const file = fileOfCode[code] ?? findBrokenFile(detail)
  if (file !== undefined) return { do: 'open-configuration', file }
  return { do: 'explain', title: detail, body: hint }
}

/** The provider of a hint that is nothing but a login: `doorward oauth login NAME`. */
export const providerToLogIn = (hint: string): string | undefined =>
  /^doorward oauth login ([\w.-]+)$/.exec(hint)?.[1]

/** The file a problem is in, by how its line begins: `/home/ada/.doorward/config/agents.yaml:4:5 …`. */
export const findBrokenFile = (line: string): ConfigFile | undefined =>
  [webhooks, agents, gateway].find((file) => inHome(line).startsWith(`${file}:`))

/** A line about a file of the configuration, without the way to the home: a row has no room for it. */
const inHome = (line: string): string =>
  line.replace(/^.*?[\\/]config[\\/](?=(?:webhooks|agents|gateway)\.yaml:\d)/, 'config/')

const codes: ReadonlySet<string> = new Set([
  'body-limit-too-large',
  'config-not-watched',
  'dangerous-combination',
  'filter-path-prefix',
  'placeholder-unfinished',
  'provider-incomplete',
  'restart-needed',
  'revocation-pending',
  'scheme-differs',
  'secret-shape',
  'target-not-encrypted',
  'version-differs',
  'webhook-unsigned',
])

/**
 * True for a problem that can wait: it has its row in the menu, and the icon goes on saying what runs. One
 * that is not known, of a newer daemon, cannot.
 */
export const canWait = ({ code }: { readonly code: string }): boolean => codes.has(code)
