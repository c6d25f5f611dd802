import { type BotAbility, type CreateBot, noAddress, toBotPath } from '../../shared/api/bots.ts'
import type { Permissions } from './installation-tokens.ts'

type Permission = { readonly name: string; readonly level: 'read' | 'write'; readonly why: string }

/** What a bot asks for, and why, as its owner reads it. GitHub's names of permissions. */
export const listPermissions = (can: BotAbility): readonly Permission[] => [
  can === 'fix'
    ? { name: 'contents', level: 'write', why: 'fetch code, and push branches with fixes' }
    : { name: 'contents', level: 'read', why: 'fetch the code that is reviewed' },
  { name: 'pull_requests', level: 'write', why: 'post reviews, and read what was answered' },
  { name: 'issues', level: 'write', why: 'answer in comments, with a reaction when work begins' },
  { name: 'checks', level: 'write', why: 'show on the commit what runs and how it ended' },
  { name: 'actions', level: 'read', why: 'read why a build failed' },
  { name: 'metadata', level: 'read', why: 'see which repositories there are, and who may do what' },
]

export const botEvents = [
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'issues',
  'issue_comment',
  'check_run',
  'check_suite',
  'workflow_run',
  'push',
] as const

/** What GitHub makes an App of: docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest. */
export type Manifest = {
  readonly name: string
  readonly url: string
  readonly hook_attributes: { readonly url: string; readonly active: true }
  readonly redirect_url: string
  readonly description: string
  readonly public: false
  readonly default_events: readonly string[]
  readonly default_permissions: Permissions
}

type ManifestInput = {
  readonly homepage: string
  readonly name: string
  readonly can: BotAbility
  readonly hookUrl: string
  readonly redirectUrl: string
}

/** GitHub refuses `hook_attributes` without `url`, and a loopback address there, even for an inactive hook. */
export const toManifest = (input: ManifestInput): Manifest => ({
  name: input.name,
  url: input.homepage,
  hook_attributes: { url: input.hookUrl, active: true },
  redirect_url: input.redirectUrl,
  description: 'Runs the agent of its owner, on the machine of its owner.',
  public: false,
  default_events: botEvents,
  default_permissions: Object.fromEntries(
    listPermissions(input.can).map(({ name, level }) => [name, level]),
  ),
})

/** The slug that GitHub makes of a name, as far as is known: the answer of GitHub counts. */
export const toSlug = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 34) || 'doorward'

/** Where the deliveries go: below a base, else to an address that leads nowhere. */
export const toHookUrl = (
  { url, placeholder }: Pick<CreateBot, 'url' | 'placeholder'>,
  publicUrl: string | undefined,
  slug: string,
): string => {
  const base = url ?? publicUrl
  if (base !== undefined) return `${base.replace(/\/+$/, '')}${toBotPath(slug)}`
  return placeholder ?? `${noAddress}${toBotPath(slug)}`
}

/** A name that nobody else is likely to have: GitHub has each name once. */
export const suggestName = (org: string | undefined, random: string): string =>
  org === undefined ? `doorward-${random}` : `${org.toLowerCase().slice(0, 25)}-doorward`
