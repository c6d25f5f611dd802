import { readdir } from 'node:fs/promises'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import type { Config } from '../../../shared/config/load.ts'
import type { Rule } from '../../../shared/config/rule.ts'
import { faultAbout, toWarning, type Warning } from '../../../shared/config/warning.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { isRoleProvider, type RoleProvider, usualWho } from '../../../shared/config/who.ts'

/** Rules that ask for a role where no login could answer. */
export const whoWarnings = async (
  config: Config,
  env: NodeJS.ProcessEnv,
  home: { readonly tokens: string },
): Promise<Warning[]> => {
  const files = await readdir(home.tokens).catch(() => [])
  const { github, gitlab } = config.gateway.targets
  const settings = { github, gitlab }
  const hasLogin = (provider: RoleProvider): boolean => {
    const { token_env: variable, login } = settings[provider]
    if (variable !== undefined) return (env[variable] ?? '') !== ''
    const isOf = new RegExp(`^${(login ?? provider).replaceAll(/[^\w@-]/g, '.')}[@.]`)
    return files.some((file) => isOf.test(file))
  }
  return config.webhooks.flatMap((webhook) => {
    const { path, enabled, scheme, source, rules } = webhook
    const { name: provider } = scheme
    if (!enabled || source?.app !== undefined || !isRoleProvider(provider) || hasLogin(provider))
      return []
    return rules
      .filter((rule) => rule.workspace?.login === undefined && asksRole(rule, webhook))
      .flatMap((rule) =>
        faultAbout({ webhook: path })(
          'who-unknown',
          `only who has the role ${String(rule.who ?? 'write')} may start it, and no login can ask ${provider} for roles: nobody starts it${rule.who === undefined && !rule.on && rule.mention === undefined ? ' by a comment or label' : ''}`,
          `doorward oauth login ${provider}, or write who: with a list of names, or anyone`,
        ).map((fault) =>
          toWarning(fault, `webhook ${path}${rule.name === undefined ? '' : ` ${rule.name}`}`),
        ),
      )
  })
}

const asksRole = (
  { who, on, mention }: Pick<Rule, 'who' | 'on' | 'mention'>,
  { scheme }: { readonly scheme: Pick<SignatureScheme, 'name'> } & Pick<Webhook, 'path'>,
): boolean => {
  if (who !== undefined) return typeof who === 'string' && who !== 'anyone'
  if (mention !== undefined) return true
  const events = (on ?? []).map((event) => event.replace(/\.\*$/, ''))
  return usualWho(scheme.name, events) !== 'anyone'
}
