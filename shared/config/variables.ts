import type { Config } from './load.ts'
import type { Agent } from './schema.ts'
import type { Webhook } from './webhook.ts'

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
  unset: readonly string[],
): string => {
  if (scheme.handshake === 'notion')
    return 'create the subscription at Notion: doorward events show ID has the token that it sends first'
  if (scheme.handshake !== 'asana') return describeUnset(unset)
  return confirm
    ? 'create the webhook at Asana: its secret comes with the first request'
    : 'confirm: true in its entry keeps the secret that Asana sends first'
}

/** The hint for unset variables. */
export const describeUnset = (names: readonly string[]): string =>
  `set ${names.join(', ')} in .env: doorward config edit env`
