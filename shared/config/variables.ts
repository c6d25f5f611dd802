import { didYouMean } from '../text.ts'
import type { Config } from './load.ts'
import type { Agent } from './schema.ts'
import type { Webhook } from './webhook.ts'

/** Every variable that a configuration names: none of them is a misspelling of another. */
export const usedVariables = ({ webhooks, agents, gateway }: Config): string[] => {
  return [
    ...webhooks.flatMap(({ secretNames, verifyTokenNames, source }) => [
      ...secretNames,
      ...verifyTokenNames,
      source?.keyEnv,
    ]),
    ...[...agents.values()].flatMap(agentVariables),
    ...Object.values(gateway.providers).map((provider) => provider.client_secret_env),
    ...Object.values(gateway.targets).flatMap(variablesOfTarget),
    ...queueVariables(gateway),
  ].filter((name) => name !== undefined)
}

/** The variables of a target or of its entries: values of keys that end with `_env`, and of the form `env:NAME`. */
const variablesOfTarget = (settings: object): string[] =>
  Object.entries(settings).flatMap(([key, value]: [string, unknown]) => {
    if (typeof value === 'object' && value !== null) return variablesOfTarget(value)
    if (typeof value !== 'string') return []
    return key.endsWith('_env') ? [value] : variablesIn({ [key]: value })
  })

/** The variables that the queue of several machines reads. */
export const queueVariables = ({ queue }: Config['gateway']): string[] => {
  const { servers_env, key_env, creds_env, nkey_env, token_env, ca_env } = queue
  if (queue.engine === 'memory') return []
  return [servers_env, key_env, creds_env, nkey_env, token_env, ca_env].filter(
    (name) => name !== undefined,
  )
}

/** The names of the variables that an agent or its request gets, each once. */
export const agentVariables = (agent: Agent): string[] => {
  if (agent.kind === 'echo') return []
  if (agent.kind === 'openai') return agent.api_key_env === undefined ? [] : [agent.api_key_env]
  return variablesIn((agent.kind === 'http' ? agent.headers : agent.env) ?? {})
}

/** The names in values of the form `env:NAME`, each once. */
export const variablesIn = (values: Readonly<Record<string, string>>): string[] => {
  const named = Object.values(values).filter((value) => value.startsWith('env:'))
  return [...new Set(named.map((value) => value.slice('env:'.length)))]
}

/** The hint for unset secrets of a webhook: some senders send theirs first. */
export const describeUnsetSecret = (
  { scheme, confirm }: Webhook,
  ...unset: Parameters<typeof describeUnset>
): string => {
  if (scheme.handshake === 'notion')
    return 'create the subscription at Notion: doorward events show ID has the token that it sends first'
  if (scheme.handshake !== 'asana') return describeUnset(...unset)
  return confirm
    ? 'create the webhook at Asana: its secret comes with the first request'
    : 'confirm: true in its entry keeps the secret that Asana sends first'
}

/**
 * The hint for unset variables, with a variable of a similar name that may be meant, unless the
 * configuration names it elsewhere (`used`).
 */
export const describeUnset = (
  names: readonly string[],
  env: NodeJS.ProcessEnv,
  used: readonly string[] = [],
): string => {
  const [name = '', ...more] = names
  const free = Object.keys(env).filter((known) => !used.includes(known))
  // Short names are all similar, and long ones end alike: GITHUB_WEBHOOK_SECRET, STRIPE_….
  const meant = more.length > 0 || name.length < 8 ? undefined : didYouMean(name, free, 2)
  const set = `set ${names.join(', ')} in .env: doorward config edit env`
  return meant === undefined ? set : `${set}; ${meant}`
}
