import type { ProviderEntry } from '../../../../shared/config/schema.ts'
import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { joinUrl } from '../../../../shared/net.ts'
import { type Check, checksFor } from '../check.ts'
import { ask, reachServer } from '../ask.ts'
import type { Reachable } from './online-targets.ts'

const agents = checksFor('agents')
const logins = checksFor('logins')

/** Where the tokens of the built-in providers are renewed. */
const builtIn: Readonly<Record<string, string>> = {
  google: 'https://oauth2.googleapis.com/token',
  github: 'https://github.com/login/oauth/access_token',
  slack: 'https://slack.com/api/oauth.v2.access',
}

/** Whether these providers can be reached: any answer will do, and no token is sent. */
export const reachProviders = async (
  providers: readonly string[],
  entries: Readonly<Record<string, ProviderEntry>>,
): Promise<Reachable[]> =>
  Promise.all(
    providers.map(async (name): Promise<Reachable> => {
      const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
      const known = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined
      const endpoint = entry?.token_endpoint ?? entry?.issuer ?? known
      const title = `${name} endpoint`
      if (endpoint === undefined) return { check: logins.skipped(title, 'gateway.yaml names none') }
      const { host, origin } = new URL(endpoint)
      const asked = await ask(new URL(origin), { method: 'HEAD' })
      if (asked.is === 'failed')
        return { check: logins.error(title, `${host}: ${asked.why}`, 'check the network') }
      return {
        check: logins.ok(title, `${host} answers`),
        ...(asked.skewMs === undefined ? {} : { skewMs: asked.skewMs }),
      }
    }),
  )

/** Whether the models and gateways that agents ask can be reached; asks no model anything. */
export const reachAgents = async (
  { webhooks }: Config,
  env: NodeJS.ProcessEnv,
): Promise<Check[]> => {
  const used = new Map(
    webhooks.filter(({ enabled }) => enabled).map(({ agentName, agent }) => [agentName, agent]),
  )
  const checks = await Promise.all(
    [...used].map(async ([name, agent]): Promise<Check[]> => {
      if (agent.kind === 'openai') {
        const url = joinUrl(agent.base_url, '/models')
        const [key] = agent.api_key_env === undefined ? [] : listSecrets([agent.api_key_env], env)
        const isKey = key !== undefined && /^[\x21-\x7e]+$/.test(key.trim())
        const headers: Record<string, string> = isKey
          ? { authorization: `Bearer ${key.trim()}` }
          : {}
        const asked = await ask(url, { headers })
        if (asked.is === 'failed')
          return [agents.error(name, `${url.host}: ${asked.why}`, 'check base_url and the network')]
        if (asked.status === 401 || asked.status === 403)
          return [
            agents.error(
              name,
              `${url.host} refuses the key`,
              agent.api_key_env === undefined
                ? 'name the variable with the key: api_key_env in agents.yaml'
                : `put a valid key into ${agent.api_key_env} in .env`,
            ),
          ]
        // All these servers list their models; one that cannot is no reason to be red.
        if (asked.status >= 400)
          return [
            agents.warning(
              name,
              `${url.host} answers ${asked.status} where its models are listed (${url.pathname})`,
              'check base_url: it ends where /chat/completions begins, mostly with /v1',
            ),
          ]
        return [agents.ok(name, `${url.host} answers`)]
      }
      if (agent.kind === 'http') {
        const url = new URL(agent.url)
        const why = await reachServer(url)
        return [
          why === undefined
            ? agents.ok(name, `something listens at ${url.host}; nothing was sent`)
            : agents.error(name, `${url.host}: ${why}`, 'check its url and the network'),
        ]
      }
      return []
    }),
  )
  return checks.flat()
}
