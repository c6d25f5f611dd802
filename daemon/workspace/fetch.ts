import { setTimeout as wait } from 'node:timers/promises'
import { DoorwardError } from '../../shared/errors.ts'
import { type Git, GitFailed, type GitOptions, type Remote } from './git.ts'
import { type Mirror, toWorkspaceError } from './mirror.ts'
import { defaultBranch, isHash } from './request.ts'

export type Wanted = {
  readonly ref: string
  readonly base: string | undefined
  readonly pull: string | undefined
  readonly depth: number | undefined
}

export type Commits = {
  readonly head: string
  readonly base: string | undefined
  /** Where `head` left `base`; undefined without a base, and where they have no commit in common. */
  readonly start: string | undefined
}

/** Git's own number for a history without an end. */
const wholeHistory = 2_147_483_647

/**
 * Fetches what is wanted in one request, and keeps it under refs, by which git knows what it has. A commit of
 * a fork, and one that was pushed over, may be at the pull request only. Senders are sometimes faster than
 * their own servers: what is not there is asked for again after `delaysMs`. A `depth` that ends before `head` and
 * `base` meet is raised: a comparison of their files alone would show the newest lines of `base` as removed.
 */
export const fetchCommits = async (
  git: Git,
  { gitDir, remote, repository }: Mirror,
  { ref, base, pull, depth }: Wanted,
  run: string,
  signal: AbortSignal,
  delaysMs: readonly number[],
): Promise<Commits> => {
  const at = { cwd: gitDir, gitDir, remote, signal }
  const place = `refs/doorward/runs/${run}`
  const wanted: Sources = [[ref, 'head'], ...(base === undefined ? [] : [[base, 'base'] as const])]
  const fetchWanted = async (limit = depth) =>
    fetchNamed(git, at, wanted, place, limit).catch(async (error: unknown) => {
      if (!(isMissing(error) && isHash(ref) && pull !== undefined)) throw error
      const others = wanted.filter(([source]) => source !== ref)
      try {
        await fetchNamed(git, at, [[pull, 'pull'], ...others], place, limit)
        // It fails where the pull request has another head by now.
        await git(['update-ref', `${place}/head`, `${ref}^{commit}`], { ...at, remote: undefined })
      } catch {
        throw error
      }
    })
  try {
    for (const delayMs of [...delaysMs, undefined])
      try {
        await fetchWanted()
        break
      } catch (error) {
        if (!isMissing(error) || delayMs === undefined) throw error
        await wait(delayMs, undefined, { signal })
      }
    const names = wanted.map(([, name]) => `${place}/${name}`)
    let commits = await readCommits(git, at, names)
    for (const limit of depth === undefined ? [] : [Math.max(100, 10 * depth), wholeHistory]) {
      if (commits.base === undefined || commits.start !== undefined) break
      await fetchWanted(limit)
      commits = await readCommits(git, at, names)
    }
    return commits
  } catch (error) {
    throw toFetchError(error, remote, repository, ref)
  } finally {
    const names = ['head', 'base', 'pull'].map((name) => `delete ${place}/${name}\n`).join('')
    const input = `start\n${names}commit\n`
    await git(['update-ref', '--stdin'], {
      ...at,
      input,
      signal: new AbortController().signal,
    }).catch(() => undefined)
  }
}

/** What the server has under a name, and the name that it gets below the refs of the run. */
type Sources = readonly (readonly [source: string, name: string])[]

/** Takes a branch before a tag of the same name, which git itself prefers. */
const fetchNamed = async (
  git: Git,
  at: GitOptions,
  sources: Sources,
  place: string,
  depth: number | undefined,
): Promise<void> => {
  const tags = new Set<string>()
  const isBranch = (source: string) => isShortName(source) && !tags.has(source)
  for (;;)
    try {
      const refs = sources.map(
        ([source, name]) => `+${isBranch(source) ? toBranch(source) : source}:${place}/${name}`,
      )
      const limit = depth === undefined ? [] : [`--depth=${depth}`]
      await git(
        ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', ...limit, 'origin', ...refs],
        at,
      )
      return
    } catch (error) {
      const words = isMissing(error) ? String(error).split(/\s/) : []
      const [missing] = sources.find(
        ([source]) => isBranch(source) && words.includes(toBranch(source)),
      ) ?? [undefined]
      if (missing === undefined) throw error
      tags.add(missing)
    }
}

const toBranch = (name: string): string => `refs/heads/${name}`

const isShortName = (source: string): boolean =>
  !isHash(source) && !source.startsWith('refs/') && source !== defaultBranch

/** The commits of these refs, head first, which git then knows that it has. */
const readCommits = async (git: Git, at: GitOptions, refs: readonly string[]): Promise<Commits> => {
  const { stdout } = await git(['rev-parse', ...refs.map((name) => `${name}^{commit}`)], at)
  const [head = '', base] = String(stdout).trim().split('\n')
  // One of each 256: git needs some recent commits to know what it has, not all.
  const kept = new Map([head, base ?? head].map((commit) => [commit.slice(0, 2), commit]))
  const input = [...kept]
    .map(([name, commit]) => `update refs/doorward/seen/${name} ${commit}\n`)
    .join('')
  await git(['update-ref', '--stdin'], { ...at, input })
  return { head, base, start: base && (await findStart(git, at, base, head)) }
}

const findStart = async (
  git: Git,
  at: GitOptions,
  base: string,
  head: string,
): Promise<string | undefined> => {
  try {
    return String((await git(['merge-base', base, head], at)).stdout).trim()
  } catch (error) {
    if (error instanceof GitFailed && error.message === '') return undefined
    throw error
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof GitFailed &&
  /not our ref|couldn't find remote ref|unadvertised object|no such remote ref/i.test(error.message)

const toFetchError = (
  error: unknown,
  { credential, url, login: provider }: Remote,
  repository: string,
  ref: string,
): unknown => {
  if (!(error instanceof GitFailed)) return error
  if (error.proxy) return toWorkspaceError(error, repository)
  if (isMissing(error))
    return new DoorwardError('workspace-ref-not-found', `${repository} has no ${ref} any more`, {
      cause: error,
      hint: 'the branch was deleted or pushed over: a newer event brings what is there now',
    })
  const isRefused =
    /could not read (Username|Password)|Authentication failed|returned error: 40[134]|not found|Access denied/i
  if (isRefused.test(error.message)) {
    const host = URL.canParse(url) ? new URL(url).host : url
    const login = credential === undefined ? 'no login for' : 'the login for'
    return new DoorwardError(
      'workspace-refused',
      `${login} ${host} opens ${repository}: it is private, or does not exist`,
      {
        cause: error,
        hint: `log in with an account that may read it: doorward oauth login ${provider ?? '<provider>'}; at github a private repository needs the scope repo`,
        about: { provider },
      },
    )
  }
  return toWorkspaceError(error, repository)
}
