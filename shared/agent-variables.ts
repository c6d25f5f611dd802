import type { Agent } from './config.ts'

/** The names of our variables whose values an agent gets or is asked with, each once. */
export const agentVariables = (agent: Agent): string[] => {
  if (agent.kind === 'echo') return []
  if (agent.kind === 'openai') return agent.api_key_env === undefined ? [] : [agent.api_key_env]
  const values = Object.values((agent.kind === 'http' ? agent.headers : agent.env) ?? {})
  const named = values.filter((value) => value.startsWith('env:'))
  return [...new Set(named.map((value) => value.slice('env:'.length)))]
}
