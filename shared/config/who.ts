import { z } from 'zod'
import type { Path } from '../paths.ts'

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

/** Senders whose comments or messages are searched for a name. */
const mentioned: readonly string[] = [...roleProviders, 'slack', 'telegram']

/** Checks what the schema cannot. */
export const checkWho = (
  {
    who,
    allowed_bots: bots,
    mention,
  }: {
    who?: Who | undefined
    allowed_bots?: readonly string[] | undefined
    mention?: string | undefined
  },
  scheme: string,
  report: (field: 'who' | 'allowed_bots' | 'mention', reason: string, hint?: string) => void,
): void => {
  if (mention !== undefined && !mentioned.includes(scheme))
    report(
      'mention',
      `deliveries with signature_scheme ${scheme} have no comments that could name it`,
      `it is for ${mentioned.join(', ')}: remove it, or write a filter`,
    )
  if (bots && who === 'anyone' && mention === undefined)
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
