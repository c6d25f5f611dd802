import { z } from 'zod'
import { DoorwardError } from '../errors.ts'
import type { Path } from '../paths.ts'
import {
  type ContextName,
  contextsIn,
  isFixed,
  parsePullTemplate,
  parseTemplate,
  pathsIn,
  type PromptTemplate,
  type Template,
} from '../templates.ts'
import { isLoginName } from './name-forms.ts'

/** The settings of a rule for the code that its agent sees. */
export type WorkspaceSettings = {
  /** `owner/name`, an https address, or a path on this machine. */
  readonly repo: Template
  readonly ref: Template
  readonly base: Template | undefined
  /** The login whose token fetches. */
  readonly login: string | undefined
  readonly access: 'read' | 'write'
  readonly depth: number | undefined
}

/** It is the first that can do without the owner's own configuration. */
export const oldestGit = '2.32'

/** Bytes of one context, where `context_limit` does not say otherwise. */
export const usualContextBytes = 200 * 1024

const template = z.string().min(1)
const unsupported = (what: string) =>
  z.literal(false, `${what} are not supported: write false, or leave it out`).optional()

export const workspaceSchema = z.strictObject({
  repo: template.describe('owner/name, an https address, or a path on this machine.'),
  ref: template
    .optional()
    .describe(
      'The commit, branch or tag that is checked out. Default: the head of the pull request of the event, else the default branch.',
    ),
  base: template
    .optional()
    .describe(
      'What it is compared with; files that steer an agent are taken from it. Default without a ref: the base of the pull request.',
    ),
  login: z
    .string()
    .refine(isLoginName, 'not a login such as github or github@work')
    .optional()
    .describe('The login whose token fetches. Default: that of the host.'),
  access: z
    .enum(['read', 'write'])
    .default('read')
    .describe('What a sandbox lets the agent do there. Default read.'),
  depth: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Commits that are fetched. Default: all, without their files.'),
  lfs: unsupported('files in LFS').describe('Only false: files in LFS stay pointers.'),
  submodules: unsupported('submodules').describe('Only false: submodules are left out.'),
})

const author = /^[^<>\p{Cc}]*[^<>\s\p{Cc}] <[^<>\s@]+@[^<>\s@]+>$/u

/** `commit` of a rule. */
export const commitSchema = z.strictObject({
  author: z
    .string()
    .refine(
      (text) => text === 'bot' || text === 'login' || author.test(text),
      'not bot, login or "Name <mail>"',
    )
    .optional()
    .describe(
      'bot is doorward, login the account whose token opens the pull request; or "Name <mail>". Default bot.',
    ),
  signoff: z
    .boolean()
    .optional()
    .describe('With true, the message ends with Signed-off-by and the author. Default false.'),
})

const name = z.string().regex(/^[^\s,/]+(\/[^\s,/]+)?$/, 'not a login, and not org/team')

/** `pull_request` of a rule. */
export const pullRequestSchema = z.strictObject({
  draft: z.boolean().optional().describe('With true, it is opened as a draft. Default false.'),
  labels: z.array(z.string().min(1).max(50)).optional().describe('Its labels. Default none.'),
  reviewers: z
    .array(name)
    .optional()
    .describe('Logins, and teams as org/team, whose review is asked for. Default none.'),
})

export type CommitSettings = z.output<typeof commitSchema>
export type PullRequestSettings = z.output<typeof pullRequestSchema>

/** How an answer and what an agent changed are published, and what of it may be. */
export type PublishSettings = {
  readonly commit?: CommitSettings | undefined
  readonly pullRequest?: PullRequestSettings | undefined
  /** Globs of files that are allowed although they run, or rule what others may do. */
  readonly allowFiles?: readonly string[] | undefined
  /** How often the rule pushes for one subject within 30 days. */
  readonly maxAttempts?: number | undefined
  /** True where branches of people may be pushed to. */
  readonly allowsPush?: boolean | undefined
  /** Hosts whose links stay links in an answer. */
  readonly allowedLinks?: readonly string[] | undefined
}

/** Undefined for a rule that says nothing of it. */
export const toPublish = (entry: {
  readonly commit?: CommitSettings | undefined
  readonly pull_request?: PullRequestSettings | undefined
  readonly allow_files?: string | readonly string[] | undefined
  readonly allow_workflows?: boolean | undefined
  readonly max_attempts?: number | undefined
  readonly allow_push?: boolean | undefined
  readonly allowed_links?: readonly string[] | undefined
}): PublishSettings | undefined => {
  const { commit, pull_request: pullRequest, max_attempts: maxAttempts } = entry
  const files = [entry.allow_files ?? []].flat()
  if (entry.allow_workflows) files.push('.github/workflows/**')
  const allowFiles = files.length === 0 ? undefined : files
  const allowsPush = entry.allow_push
  const allowedLinks = entry.allowed_links
  const settings = { commit, pullRequest, allowFiles, maxAttempts, allowsPush, allowedLinks }
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/** Outside a pull request both are the default branch. */
const pullHead = '{{pull.head.sha}}'
const pullBase = '{{pull.base.sha}}'

/** Throws `config-invalid`. */
export const parseWorkspace = (entry: z.output<typeof workspaceSchema>): WorkspaceSettings => {
  const { repo, ref, base, login, access, depth } = entry
  const parsed = parseTemplate(repo)
  if (/^[/~]/.test(repo) && !isFixed(parsed))
    throw new DoorwardError('config-invalid', 'an event cannot choose a path on this machine', {
      hint: 'write the whole path, owner/name or an https address',
    })
  if (/^(git@|ssh:|git:|file:)/.test(repo))
    throw new DoorwardError('config-invalid', 'git uses https here, with the token of a login', {
      hint: 'write owner/name, or https://host/owner/name.git',
    })
  const compared = base ?? (ref === undefined ? pullBase : undefined)
  return {
    repo: parsed,
    ref: parsePullTemplate(ref ?? pullHead),
    base: compared === undefined ? undefined : parsePullTemplate(compared),
    login,
    access,
    depth,
  }
}

/** These need no `base`. */
const ofGithub: ReadonlySet<ContextName> = new Set(['failed-logs', 'comments', 'reviews'])

/** Checks that `context`, the prompt and the workspace of a rule go together. */
export const checkContext = (
  {
    context = [],
    prompt,
    workspace,
  }: {
    readonly context?: readonly ContextName[] | undefined
    readonly prompt?: PromptTemplate | undefined
    readonly workspace?: WorkspaceSettings | undefined
  },
  at: (key: 'context' | 'workspace', reason: string, hint: string) => void,
): void => {
  const missing = (prompt ? contextsIn(prompt) : []).filter((name) => !context.includes(name))
  if (missing.length > 0)
    at(
      'context',
      `prompt_template has ${missing.map((name) => `{{context.${name}}}`).join(', ')}, which this does not name`,
      `write context: [${[...context, ...missing].join(', ')}]`,
    )
  if (context.length === 0) return
  if (!workspace)
    at('context', 'it needs a workspace', 'say which code it is of: doorward help workspaces')
  const [compared] = context.filter((name) => !ofGithub.has(name))
  if (workspace && !workspace.base && compared !== undefined)
    at(
      'workspace',
      `${compared} needs a base`,
      'write into workspace what its ref is compared with',
    )
}

/** The paths of the values that it reads of a delivery. */
export const workspacePaths = ({ repo, ref, base }: WorkspaceSettings): Path[] =>
  [repo, ref, base].flatMap((part) => (part ? pathsIn(part) : []))
