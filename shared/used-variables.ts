import { agentVariables, variablesIn } from './agent-variables.ts'
import type { Config } from './load-config.ts'

/** Every variable that a configuration names, for whatever: none of them is another one misspelt. */
export const usedVariables = ({ webhooks, agents, gateway }: Config): string[] => {
  const { slack, telegram, discord, email, github, http } = gateway.targets
  return [
    ...webhooks.flatMap(({ secretNames }) => secretNames),
    ...[...agents.values()].flatMap(agentVariables),
    ...Object.values(gateway.providers).map((provider) => provider.client_secret_env),
    ...[slack, telegram, github].map((target) => target.token_env),
    ...Object.values(discord).map((target) => target.url_env),
    ...Object.values(http).map((target) => target.secret_env),
    ...Object.values(http).flatMap((target) => variablesIn(target.headers ?? {})),
    email.smtp_url_env,
  ].filter((name) => name !== undefined)
}
