import { isAbsolute } from 'node:path'
import { type GitHost, gitHosts, hostAt } from '../../shared/config/git-hosts.ts'
import { getProviderName } from '../../shared/config/name-forms.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import type { WorkspaceSettings } from '../../shared/config/workspace.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { expandTilde } from '../../shared/home/home.ts'
import { isFixed, type Template } from '../../shared/templates.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import type { EventScope } from '../webhook/read-delivery.ts'
import type { Remote } from './git.ts'

/** The workspace that one event asks for: texts, which `findRepository` and `checkRef` check when it runs. */
export type WorkspaceRequest = {
  readonly repo: string
  /** The part of `repo` that the rule itself names: all of it, the host of its address, or nothing. */
  readonly fixed: 'all' | 'host' | 'nothing'
  readonly ref: string
  readonly base: string | undefined
  /** The ref under which the server keeps the head of this pull request, also of a fork. */
  readonly pull: string | undefined
  /** The number of the pull request whose commits GitHub is asked for before: then `ref` or `base` have their places. */
  readonly asks?: number
  readonly login: string | undefined
  readonly access: 'read' | 'write'
  readonly depth: number | undefined
}

/** Inserts the values of an event. Throws nothing. */
export const expandWorkspace = (
  { repo, ref, base, login, access, depth }: WorkspaceSettings,
  scope: EventScope,
): WorkspaceRequest => {
  const named = fill(repo, scope)
  const commits = findCommits(named, scope.event)
  const from = { ...scope, pull: toPlaces(commits) }
  const request = { ref: fill(ref, from), base: base && fill(base, from) }
  const isOpen = [ref, base].some((part) => part?.parts.some(([root]) => root === 'pull'))
  return {
    repo: named,
    fixed: getFixed(repo),
    ...request,
    pull: findPull(scope.event),
    login,
    access,
    depth,
    ...(isOpen && typeof commits === 'number' && { asks: commits }),
  }
}

const getFixed = (repo: Template): WorkspaceRequest['fixed'] => {
  if (isFixed(repo)) return 'all'
  return /^https?:\/\/[^/{}]+\//.test(repo.source) ? 'host' : 'nothing'
}

const maxValueLength = 500

const fill = ({ parts }: Template, scope: object): string =>
  parts
    .map((part) => {
      if (typeof part === 'string') return part
      const value = valueAt(scope, part)
      const isText = typeof value === 'string' || typeof value === 'number'
      // Longer than any name: it is refused with the rest.
      return isText ? String(value).slice(0, maxValueLength) : ''
    })
    .join('')

/** GitHub, Gitea and Forgejo: refs/pull; GitLab: refs/merge-requests. */
const findPull = (event: unknown): string | undefined => {
  const isPull = valueAt(event, ['issue', 'pull_request']) !== undefined
  const number =
    valueAt(event, ['pull_request', 'number']) ??
    (isPull ? valueAt(event, ['issue', 'number']) : undefined)
  if (isNumber(number)) return `refs/pull/${number}/head`
  const isMergeRequest = valueAt(event, ['object_kind']) === 'merge_request'
  const iid =
    valueAt(event, ['merge_request', 'iid']) ??
    (isMergeRequest && valueAt(event, ['object_attributes', 'iid']))
  return isNumber(iid) ? `refs/merge-requests/${iid}/head` : undefined
}

/** The head and the base of a pull request. */
type PullCommits = { readonly head: string; readonly base: string }

/**
 * The commits of the pull or merge request of an event: in the payload, or the number by which GitHub is asked, as
 * the event of a comment names no commit. Undefined for other events, and for those of another repository.
 */
const findCommits = (repo: string, event: unknown): PullCommits | number | undefined => {
  const at = (...path: string[]) => textAt(event, ...path)
  const name = at('repository', 'full_name') ?? at('project', 'path_with_namespace')
  if (name === undefined || !isRepository(repo, name)) return undefined
  const [head, base] = [at('pull_request', 'head', 'sha'), at('pull_request', 'base', 'sha')]
  if (head !== undefined && base !== undefined) return { head, base }
  const isMergeRequest = at('object_kind') === 'merge_request'
  const place = isMergeRequest ? 'object_attributes' : 'merge_request'
  const [last, target] = [at(place, 'last_commit', 'id'), at(place, 'target_branch')]
  if (last !== undefined && target !== undefined) return { head: last, base: target }
  const number = valueAt(event, ['issue', 'number'])
  const isPull = valueAt(event, ['issue', 'pull_request']) !== undefined
  return isPull && isNumber(number) ? number : undefined
}

/** True for the path of a repository, an address that ends with it, and a folder of this machine. */
const isRepository = (repo: string, name: string): boolean => {
  if (/^[/~]/.test(repo)) return true
  const path = URL.canParse(repo) ? new URL(repo).pathname.slice(1) : repo
  return path.replace(/\.git$/, '').toLowerCase() === name.toLowerCase()
}

/** What `{{pull.…}}` stands for: a commit, the default branch, or itself until GitHub is asked. */
const toPlaces = (commits: PullCommits | number | undefined) => {
  const toPlace = (side: keyof PullCommits) => {
    if (commits === undefined) return { sha: defaultBranch }
    return { sha: typeof commits === 'number' ? placeOf(side) : commits[side] }
  }
  return { head: toPlace('head'), base: toPlace('base') }
}

const placeOf = (side: keyof PullCommits): string => `{{pull.${side}.sha}}`

/** The request with the commits of its pull request, as GitHub names them now: the run keeps to these. */
export const withCommits = (
  { asks: _asks, ...request }: WorkspaceRequest,
  commits: PullCommits,
): WorkspaceRequest => {
  const put = (text: string) =>
    text
      .replaceAll(placeOf('head'), () => commits.head)
      .replaceAll(placeOf('base'), () => commits.base)
  return { ...request, ref: put(request.ref), base: request.base && put(request.base) }
}

const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0

const fullHash = /^([0-9a-f]{40}|[0-9a-f]{64})$/

export const isHash = (text: string): boolean => fullHash.test(text)

/** The branch that a server has as its default. */
export const defaultBranch = 'HEAD'

/** The hash in an event of what did not exist before, or does not exist any more. */
const isZero = (text: string): boolean => /^0{40,64}$/.test(text)

/** The name of a branch or tag, a full ref, or a full hash. Throws `workspace-invalid`, without the value. */
export const checkRef = (text: string, what: 'ref' | 'base'): string => {
  if (isZero(text))
    throw new DoorwardError('workspace-ref-not-found', `the ${what} of this event was deleted`)
  // git-check-ref-format(1).
  const isName =
    text.length <= 250 &&
    !/[\u0000-\u0020\u007f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)/.test(text) &&
    !/^[-./]|[/.]$|^@?$/.test(text)
  if (isName) return text
  throw invalid(what, text, 'no name of a branch or tag, and no full hash')
}

/** A repository of a request: what git opens, and the login whose token does. */
export type Repository = {
  readonly url: string
  readonly protocol: Remote['protocol']
  /** Undefined for a path, and for a host of no login. */
  readonly login:
    { readonly name: string; readonly host: GitHost; readonly isChosen: boolean } | undefined
}

/** The arguments of a request for git. Throws `workspace-invalid`, or `workspace-ref-not-found`. */
export const checkRequest = ({ base, ...request }: WorkspaceRequest, gateway: Gateway) => {
  // The event of a new branch has zeros as what was there before.
  const isNewBranch = base !== undefined && isZero(base)
  return {
    ref: checkRef(request.ref, 'ref'),
    base: isNewBranch ? defaultBranch : base === undefined ? undefined : checkRef(base, 'base'),
    isNewBranch,
    repository: findRepository(request, gateway),
  }
}

const segment = String.raw`(?!\.{1,2}(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_.~-]{0,254}`
const shortName = new RegExp(`^(?:${segment}/){1,20}${segment}$`)
const addressPath = new RegExp(`^/(?:${segment}/){0,20}${segment}$`)

/** Throws `workspace-invalid`, without a value of the event, for what is no repository. */
export const findRepository = (
  { repo, fixed, login }: Pick<WorkspaceRequest, 'repo' | 'fixed' | 'login'>,
  gateway: Gateway,
): Repository => {
  const hosts = gitHosts(gateway)
  if (/^https?:/.test(repo)) return findAddress({ repo, fixed, login }, hosts)
  const path = expandTilde(repo)
  if (isAbsolute(path)) {
    if (fixed === 'all') return { url: path, protocol: 'file', login: undefined }
    throw invalid('repo', repo, 'a path on this machine, which only the rule itself can name')
  }
  if (!shortName.test(repo)) throw invalid('repo', repo, notRepository)
  const name = login ?? 'github'
  const host = hosts.find(({ provider }) => provider === getProviderName(name))
  if (!host)
    throw new DoorwardError('workspace-invalid', `the provider ${name} has no host for git`, {
      hint: `write the whole address into repo, or git_hosts for ${name}: doorward config edit gateway`,
    })
  return toRepository(`${host.origin}/${withSuffix(repo)}`, host, login)
}

const notRepository = 'no owner/name, no https address, and no path on this machine'

const findAddress = (
  { repo, fixed, login }: Pick<WorkspaceRequest, 'repo' | 'fixed' | 'login'>,
  hosts: readonly GitHost[],
): Repository => {
  if (!URL.canParse(repo)) throw invalid('repo', repo, notRepository)
  const { protocol, host, hostname, origin, pathname, username, password, search, hash } = new URL(
    repo,
  )
  const isLoopback = /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname)
  if (protocol !== 'https:' && !isLoopback) throw invalid('repo', repo, 'no https address')
  if (username + password + search + hash !== '' || !addressPath.test(pathname))
    throw invalid('repo', repo, 'no plain address of a repository')
  const known = hostAt({ protocol: protocol.slice(0, -1), host, username: undefined }, hosts)
  if (!known && fixed === 'nothing')
    throw invalid('repo', repo, 'on a host that no login knows, and an event cannot choose another')
  const isOurs = known && (login === undefined || getProviderName(login) === known.provider)
  if (login !== undefined && !isOurs)
    throw new DoorwardError('workspace-invalid', `the login ${login} is not for ${host}`, {
      hint: `name the host in git_hosts of ${getProviderName(login)}: doorward config edit gateway`,
    })
  return toRepository(`${origin}${pathname}`, known, login)
}

const toRepository = (
  url: string,
  host: GitHost | undefined,
  login: string | undefined,
): Repository => ({
  url,
  protocol: url.startsWith('https:') ? 'https' : 'http',
  login: host && { name: login ?? host.provider, host, isChosen: login !== undefined },
})

const withSuffix = (name: string): string => (name.endsWith('.git') ? name : `${name}.git`)

const invalid = (what: string, text: string, why: string) =>
  new DoorwardError(
    'workspace-invalid',
    `the ${what} of the workspace is ${text === '' ? 'empty in this event' : why}`,
    { hint: 'docs: doorward help workspaces' },
  )

/** `owner/name` of the address of a repository; undefined where its path has another form. */
export const toRepositoryName = (url: string): string | undefined => {
  const [, name] = /^\/([^/]+\/[^/]+?)(?:\.git)?$/.exec(new URL(url).pathname) ?? []
  return name
}

/** `owner/name` of a repository as a rule names it: so, or by its address; undefined for a folder. */
export const findRepositoryName = (repo: string): string | undefined => {
  if (/^[^/:]+\/[^/]+$/.test(repo)) return repo
  return URL.canParse(repo) ? toRepositoryName(repo) : undefined
}
