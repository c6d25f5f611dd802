import { readdir } from 'node:fs/promises'
import { z } from 'zod'
import type { Path } from '../paths.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import type { Config } from './load.ts'
import type { Rule } from './rule.ts'
import { faultAbout, toWarning, type Warning } from './warning.ts'
import type { Webhook } from './webhook.ts'
import type { RuleEntry } from './webhook-schema.ts'

/*
 * Who may start a rule: everyone, those with a role in the repository of the event, or people by name.
 */

/** GitHub's roles, the lowest first. */
export const roles = ['read', 'triage', 'write', 'maintain', 'admin'] as const
export type Role = (typeof roles)[number]

export type Who = 'anyone' | Role | readonly string[]

const person = z.union([z.string().regex(/^\S{1,100}$/, 'not a name'), z.int().transform(String)])

export const whoSchema = z.union([z.enum(['anyone', ...roles]), z.array(person).min(1)])
export const allowedBotsSchema = z.array(person).min(1)

type Names = {
  /** The first that is there counts. */
  readonly places: readonly Path[]
  /** A name is the same in capitals; an id is not. */
  readonly isName?: boolean
}

const ofSender: Names = { places: [['sender', 'login']], isName: true }

/** Where the senders that name a person have its name or id, by scheme. */
const names: Readonly<Record<string, Names>> = {
  github: ofSender,
  gitea: ofSender,
  gitlab: { places: [['user', 'username'], ['user_username']], isName: true },
  bitbucket: { places: [['actor', 'account_id']] },
  jira: { places: [['user', 'accountId']] },
  linear: { places: [['actor', 'id']] },
  slack: {
    // Of a message that was edited the editor counts.
    places: [
      ['event', 'message', 'edited', 'user'],
      ['event', 'user'],
      ['user', 'id'],
      ['user_id'],
    ],
  },
  telegram: {
    places: ['edited_message', 'message', 'callback_query'].map((kind) => [kind, 'from', 'id']),
  },
}

/** Where a payload names who caused it; undefined where its sender names nobody. */
export const findNames = (scheme: string): Names | undefined => names[scheme]

/** Senders that are asked for the role of a person. */
const roleProviders = ['github', 'gitlab'] as const
export type RoleProvider = (typeof roleProviders)[number]

export const isRoleProvider = (scheme: string): scheme is RoleProvider =>
  (roleProviders as readonly string[]).includes(scheme)

/** What strangers can cause with a word, a label or a button. */
const byPeople: Readonly<Record<RoleProvider, RegExp>> = {
  github:
    /^(?:(?:issue|commit|discussion)_comment|pull_request_review(?:_comment)?|check_run\.re(?:quested_action|requested))(?:\.|$)|\.(?:un)?labeled$/,
  gitlab: /^note(?:\.|$)/,
}

/** Who may start what does not say it: those who may write, where a person starts it by a word. */
export const usualWho = (scheme: string, events: readonly string[]): Who =>
  isRoleProvider(scheme) && events.some((event) => byPeople[scheme].test(event))
    ? 'write'
    : 'anyone'

/** Checks what the schema cannot. */
export const checkWho = (
  { who, allowed_bots: bots }: Pick<RuleEntry, 'who' | 'allowed_bots'>,
  scheme: string,
  report: (field: 'who' | 'allowed_bots', reason: string, hint?: string) => void,
): void => {
  if (bots && who === 'anyone')
    report(
      'allowed_bots',
      'has no effect with who: anyone, where bots may start it too',
      'remove one',
    )
  if (who === undefined || who === 'anyone') return
  if (typeof who === 'string') {
    if (!isRoleProvider(scheme))
      report(
        'who',
        `only GitHub and GitLab are asked for roles, and signature_scheme is ${scheme}`,
        'write a list of names, or anyone',
      )
    return
  }
  if (!findNames(scheme))
    report(
      'who',
      `deliveries with signature_scheme ${scheme} do not say who started them`,
      'write a filter, or anyone',
    )
  const role = who.find((name) => (roles as readonly string[]).includes(name))
  if (role !== undefined)
    report('who', `a list has names of people, and ${role} is a role`, `write who: ${role}`)
}

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
          `only who has the role ${String(rule.who ?? 'write')} may start it, and no login can ask ${provider} for roles: nobody starts it${rule.who === undefined && !rule.on ? ' by a comment or label' : ''}`,
          `doorward oauth login ${provider}, or write who: with a list of names, or anyone`,
        ).map((fault) =>
          toWarning(fault, `webhook ${path}${rule.name === undefined ? '' : ` ${rule.name}`}`),
        ),
      )
  })
}

const asksRole = (
  { who, on }: Pick<Rule, 'who' | 'on'>,
  { scheme }: { readonly scheme: Pick<SignatureScheme, 'name'> } & Pick<Webhook, 'path'>,
): boolean => {
  if (who !== undefined) return typeof who === 'string' && who !== 'anyone'
  const events = (on ?? []).map((event) => event.replace(/\.\*$/, ''))
  return usualWho(scheme.name, events) !== 'anyone'
}
