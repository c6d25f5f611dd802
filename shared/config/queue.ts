import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import type { Rule } from './rule.ts'
import { isLoopbackUrl } from '../net.ts'
import { describeUnset, queueVariables } from './variables.ts'
import { warn, type Warning } from './warning.ts'
import { enabledRules } from '../schedules/definitions.ts'

/* The queue: in memory, or in NATS for several machines. */

/** What runs on this machine: on a receiver nothing, and on a worker, which has no rules, each of its agents. */
export const localAgents = (config: Config): Pick<Rule, 'agentName' | 'agent' | 'workspace'>[] => {
  const { engine, role } = config.gateway.queue
  if (engine === 'memory' || role === 'both') return enabledRules(config)
  return role === 'receiver'
    ? []
    : [...config.agents].map(([agentName, agent]) => ({ agentName, agent, workspace: undefined }))
}

/** The keys of a variable, the one that seals first; undefined where one of them is no key. */
export const parseQueueKeys = (text: string): readonly Buffer[] | undefined => {
  const keys = text.split(',').map((part) => part.trim())
  // `Buffer.from` skips what is not base64.
  const isKey = (key: string) => /^[A-Za-z0-9+/_-]{43}=?$/.test(key)
  return keys.every(isKey) ? keys.map((key) => Buffer.from(key, 'base64')) : undefined
}

/** Addresses of NATS servers; undefined where one of them is none. */
export const parseQueueServers = (text: string): readonly URL[] | undefined => {
  const parts = text.split(',').map((part) => part.trim())
  const urls = parts.map((part) => (part.includes('://') ? part : `nats://${part}`))
  const isServer = (url: string) => /^(nats|tls):\/\/./.test(url) && URL.canParse(url)
  return urls.every(isServer) ? urls.map((url) => new URL(url)) : undefined
}

/** What prevents that machines work together, or makes it unsafe. */
export const queueWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const { queue } = config.gateway
  if (queue.engine === 'memory') return []
  const names = queueVariables(config.gateway)
  const unset = names.filter((name) => listSecrets([name], env).length === 0)
  const servers = parseQueueServers(env[queue.servers_env] ?? '')
  const isPlain = servers?.some((url) => url.protocol === 'nats:' && !isLoopbackUrl(url.href))
  const isSet = (name: string) => !unset.includes(name)
  return [
    ...(unset.length === 0
      ? []
      : warn(
          'queue-unset',
          `queue: ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty, so this machine is not connected`,
          describeUnset(unset),
        )),
    ...(isSet(queue.servers_env) && !servers
      ? warn(
          'queue-invalid',
          `queue: ${queue.servers_env} does not hold addresses of NATS servers`,
          'write them like tls://nats.example:4222, separated by commas',
        )
      : []),
    ...(isSet(queue.key_env) && !parseQueueKeys(env[queue.key_env] ?? '')
      ? warn(
          'queue-invalid',
          `queue: ${queue.key_env} does not hold keys of 32 bytes in base64`,
          'make one with: openssl rand -base64 32, and set it on all machines',
        )
      : []),
    ...(isPlain && !queue.ca_env
      ? warn(
          'queue-plain',
          `queue: ${queue.servers_env} names another machine without tls://: NATS credentials and the names of webhooks travel in the clear`,
          'set up TLS on the server and write tls://',
        )
      : []),
  ]
}
