import { basename, join } from 'node:path'
import type { Gateway } from '../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { type Home, systemReason } from '../../shared/home/home.ts'
import type { RunProcess } from '../agents/orphans.ts'
import { makeAgentFolder, removeFolder } from '../agents/workspace.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { type Captured, commitChanges } from './commit.ts'
import { createGit, type Git, type Remote } from './git.ts'
import { type Commits, fetchCommits } from './fetch.ts'
import { type Mirror, openMirror, toWorkspaceError } from './mirror.ts'
import {
  checkRequest,
  type Repository,
  toRepositoryName,
  type WorkspaceRequest,
} from './request.ts'
import { WorkspaceStore } from './store.ts'
import { checkOut } from './worktree.ts'
import type { GitOptions, GitOutput } from './git.ts'

/** The code that one run of an agent sees: a worktree of the mirror of a repository. */
export type Workspace = Commits & {
  /** The folder of the worktree. */
  readonly path: string
  /** The repository as the rule names it, with the values of the event. */
  readonly repository: string
  /** The mirror. */
  readonly gitDir: string
  /**
   * Runs git in the mirror, for a diff and the like. A file that a partial clone left out is fetched with the
   * login of the workspace.
   */
  readonly git: (args: readonly string[], options?: Partial<GitOptions>) => Promise<GitOutput>
  /** Notes for the owner, in the detail of the event. */
  readonly notes: readonly string[]
  /** Commits what the agent changed, with doorward's own identity. */
  readonly commit: (message: string) => Promise<Captured>
  /** Removes the worktree. */
  readonly release: () => Promise<void>
}

/**
 * Makes the code of one event ready; calls `onCheckout` when its commits are fetched. Throws a `workspace-…` error,
 * or why there is no token.
 */
export type PrepareWorkspace = (
  request: WorkspaceRequest,
  eventId: string,
  signal: AbortSignal,
  onCheckout?: () => void,
) => Promise<Workspace>

type WorkspacesParts = {
  readonly home: Pick<Home, 'workspaces' | 'run'>
  /** Runs git. */
  readonly run: RunProcess
  readonly access: Tokens['access']
  /** Until a commit is asked for again that is not there yet. */
  readonly delaysMs?: readonly number[]
}

/** A fetch may take long. */
const tokenValidityMs = 10 * 60_000
const trimEveryMs = 60 * 60_000

/** A mirror that was not used for so long is removed. */
const keepMs = 30 * 24 * 60 * 60_000

/** All mirrors and worktrees of a home, whatever the configuration is. */
export class Workspaces {
  readonly store: WorkspaceStore
  readonly #parts: WorkspacesParts
  #trimmedAt = Number.NEGATIVE_INFINITY

  constructor(parts: WorkspacesParts) {
    this.#parts = parts
    this.store = new WorkspaceStore(parts.home.workspaces)
  }

  /** Uses the hosts, logins and variables of one configuration. */
  preparer(gateway: Gateway, env: NodeJS.ProcessEnv): PrepareWorkspace {
    const git = createGit(this.#parts.run, env, this.#parts.home.run)
    return async (request, eventId, signal, onCheckout) =>
      named(request.repo, signal, async () =>
        this.#prepare(git, gateway, request, eventId, signal, onCheckout),
      )
  }

  /** Removes what is left over, old, or too much; at most once an hour. Throws nothing. */
  async trim({ workspaces }: Gateway): Promise<void> {
    if (performance.now() - this.#trimmedAt < trimEveryMs) return
    this.#trimmedAt = performance.now()
    const limits = { maxBytes: workspaces.max_size, keepMs }
    await this.store.trim(limits).catch(() => undefined)
  }

  async #prepare(
    git: Git,
    gateway: Gateway,
    request: WorkspaceRequest,
    eventId: string,
    signal: AbortSignal,
    onCheckout?: () => void,
  ): Promise<Workspace> {
    const { ref, base, isNewBranch, repository } = checkRequest(request, gateway)
    const remote = await this.#toRemote(repository)
    const folder = this.store.folderOf(repository.url, request.depth)
    const { withLock } = this.store
    // In the lock, so that a mirror with a run is never removed.
    const place = await withLock(folder, async () =>
      makeAgentFolder(await this.store.makeRunsFolder(folder)),
    )
    const release = async () => {
      await removeFolder(place).catch(() => undefined)
      await this.store.removeEmpty(folder).catch(() => undefined)
      void this.trim(gateway)
    }
    try {
      const { pull, depth } = request
      const wanted = { ref, base, pull, depth }
      const { commits, mirror } = await withLock(folder, async () => {
        const { gitDir, isNew } = await openMirror(git, folder, remote, signal)
        const mirror: Mirror = { gitDir, remote, repository: request.repo }
        const delaysMs = this.#parts.delaysMs ?? [1000, 3000]
        try {
          const run = basename(place)
          const commits = await fetchCommits(git, mirror, wanted, run, signal, delaysMs)
          return { mirror, commits }
        } catch (error) {
          if (isNew) await removeFolder(gitDir)
          throw error
        }
      })
      onCheckout?.()
      const path = join(place, basename(folder).replace(/-[^-]*$/, ''))
      const { max_size } = gateway.workspaces
      const worktree = await checkOut(git, mirror, commits, path, signal, max_size)
      const own = { cwd: mirror.gitDir, gitDir: mirror.gitDir, remote, signal }
      return {
        path,
        repository: request.repo,
        ...commits,
        gitDir: mirror.gitDir,
        notes: [...describeStart(commits, isNewBranch), ...worktree.notes],
        git: async (args, options = {}) =>
          named(request.repo, signal, async () => git(args, { ...own, ...options })),
        commit: async (message) =>
          named(request.repo, signal, async () =>
            commitChanges(
              git,
              mirror,
              worktree,
              commits.head,
              toCommitRef(eventId),
              message,
              signal,
            ),
          ),
        release,
      }
    } catch (error) {
      await release()
      throw error
    }
  }

  async #toRemote({ url, protocol, login }: Repository): Promise<Remote> {
    if (!login) return { url, protocol }
    const { name, host, isChosen } = login
    try {
      const { accessToken } = await this.#parts.access(name, {
        minValidityMs: tokenValidityMs,
        gitOrigin: host.origin,
        // A bot's token is of this repository, and reads it.
        repository: toRepositoryName(url),
        asker: 'workspace',
      })
      // The same user names as in `git-credential`.
      const username = host.isNamed ? 'oauth2' : 'x-access-token'
      return {
        url,
        protocol,
        login: name,
        credential: { origin: host.origin, username, token: accessToken },
      }
    } catch (error) {
      // A public repository needs no login.
      if (isChosen || !(error instanceof DoorwardError && error.code === 'not-logged-in'))
        throw error
      return { url, protocol, login: name }
    }
  }
}

/** What the owner should know of the comparison of a change. */
const describeStart = ({ base, start }: Commits, isNewBranch: boolean): string[] => {
  if (base !== undefined && start === undefined)
    return ['base and ref have no commit in common: all their files are compared']
  return isNewBranch ? ['nothing was there before: compared with the default branch'] : []
}

/** Throws what git, or the file system, says as an error about this repository. */
const named = async <Value>(
  repository: string,
  signal: AbortSignal,
  run: () => Promise<Value>,
): Promise<Value> => {
  try {
    return await run()
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    if (signal.aborted)
      throw new DoorwardError('agent-stopped', 'the workspace was left as the daemon stops')
    throw toFileError(toWorkspaceError(error, repository), repository)
  }
}

/** The ref of what an agent has changed, in the mirror. */
const toCommitRef = (eventId: string): string => `refs/doorward/commits/${eventId}`

/** An error of the file system, for people. */
const toFileError = (error: unknown, repository: string): unknown => {
  const code = error instanceof DoorwardError ? undefined : systemCode(error)
  if (code === undefined) return error
  const isFull = code === 'ENOSPC' || code === 'EDQUOT'
  return new DoorwardError(
    'workspace-failed',
    `the workspace of ${repository} cannot be written: ${isFull ? 'the disk is full' : systemReason(error)}`,
    { cause: error, hint: isFull ? 'doorward workspace clear' : undefined },
  )
}
