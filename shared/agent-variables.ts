import type { Agent } from './config.ts'

/** The names of our variables whose values an agent gets or is asked with, each once. */
export const agentVariables = (agent: Agent): string[] => {
  if (agent.kind === 'echo') return []
  if (agent.kind === 'openai') return agent.api_key_env === undefined ? [] : [agent.api_key_env]
  return variablesIn((agent.kind === 'http' ? agent.headers : agent.env) ?? {})
}

/** The names of the variables that values name as `env:NAME`, each once. */
export const variablesIn = (values: Readonly<Record<string, string>>): string[] => {
  const named = Object.values(values).filter((value) => value.startsWith('env:'))
  return [...new Set(named.map((value) => value.slice('env:'.length)))]
}
