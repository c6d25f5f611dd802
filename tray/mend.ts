import type { StatusProblem } from '../shared/api.ts'
import type { Action, ConfigFile } from './action.ts'

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
export const mendOf = ({ code, detail, hint }: StatusProblem): Action => {
  const provider = providerToLogIn(hint)
  if (provider !== undefined) return { do: 'login', provider }
  if (code === 'restart-needed' || code === 'config-not-watched' || hint === restart)
    return { do: 'restart-daemon' }
  const file = fileOfCode[code] ?? brokenFile(detail)
  if (file !== undefined) return { do: 'open-configuration', file }
  return { do: 'explain', title: detail, body: hint }
}

/** The provider of a hint that is nothing but a login: `doorward oauth login NAME`. */
export const providerToLogIn = (hint: string): string | undefined =>
  /^doorward oauth login ([\w.-]+)$/.exec(hint)?.[1]

/** The file a problem is in, by how its line begins: `/home/ada/.doorward/config/agents.yaml:4:5 …`. */
export const brokenFile = (line: string): ConfigFile | undefined =>
  [webhooks, agents, gateway].find((file) => inHome(line).startsWith(`${file}:`))

/** A line about a file of the configuration, without the way to the home: a row has no room for it. */
export const inHome = (line: string): string =>
  line.replace(/^.*?[\\/]config[\\/](?=(?:webhooks|agents|gateway)\.yaml:\d)/, 'config/')
