import type { Config } from '../../../shared/config/load.ts'
import type { Target } from '../../../shared/config/targets.ts'

export type NeededLogin = {
  readonly provider: string
  /** What uses it: targets and agents, as the configuration names them. */
  readonly by: readonly string[]
  /** Scopes of which one is needed to deliver; none for an agent, which may do anything. */
  readonly anyOf: readonly string[]
}

/** The logins that what is enabled cannot do without. */
export const neededLogins = ({ webhooks, gateway }: Config): NeededLogin[] => {
  const needed = new Map<string, { by: Set<string>; anyOf: readonly string[] }>()
  const need = (provider: string, by: string, anyOf: readonly string[]) => {
    const found = needed.get(provider) ?? { by: new Set(), anyOf }
    found.by.add(by)
    needed.set(provider, { by: found.by, anyOf: anyOf.length > 0 ? anyOf : found.anyOf })
  }
  for (const { enabled, agent, agentName, targets } of webhooks) {
    if (!enabled) continue
    for (const { kind } of targets) {
      const { provider, anyOf } = loginOf(kind, gateway.targets) ?? {}
      if (provider !== undefined) need(provider, `target ${kind}`, anyOf ?? [])
    }
    for (const value of Object.values('env' in agent ? (agent.env ?? {}) : {}))
      if (value.startsWith('oauth:')) need(value.slice('oauth:'.length), `agent ${agentName}`, [])
  }
  return [...needed].map(([provider, { by, anyOf }]) => ({ provider, by: [...by], anyOf }))
}

const gmail = 'https://www.googleapis.com/auth/gmail'

/** The login by which a kind of target is delivered to, where no variable holds its token. */
export const loginOf = (
  kind: Target['kind'],
  targets: Config['gateway']['targets'],
): Pick<NeededLogin, 'provider' | 'anyOf'> | undefined => {
  switch (kind) {
    // docs.slack.dev/reference/methods/chat.postMessage
    case 'slack':
      return targets.slack.token_env === undefined
        ? { provider: 'slack', anyOf: ['chat:write'] }
        : undefined
    case 'github':
      return targets.github.token_env === undefined
        ? { provider: 'github', anyOf: ['repo', 'public_repo'] }
        : undefined
    // developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/send
    case 'email':
      return targets.email.smtp_url_env === undefined
        ? {
            provider: 'google',
            anyOf: [
              'https://mail.google.com/',
              `${gmail}.modify`,
              `${gmail}.compose`,
              `${gmail}.send`,
            ],
          }
        : undefined
    case 'none':
    case 'log':
    case 'notify':
    case 'file':
    case 'telegram':
    case 'discord':
    case 'http':
      return undefined
  }
}
