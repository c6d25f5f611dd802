import type { GitOptions, GitOutput } from './git.ts'

/** The code that one run of an agent sees: a worktree of the mirror of a repository. */
export type Workspace = {
  /** The folder of the worktree. */
  readonly path: string
  /** The repository as the rule names it, with the values of the event. */
  readonly repository: string
  /** The full hash of `ref`. */
  readonly head: string
  /** The full hash of `base`. */
  readonly base: string | undefined
  /** The mirror. */
  readonly gitDir: string
  /**
   * Runs git in the mirror, for a diff and the like. A file that a partial clone left out is fetched with the
   * login of the workspace.
   */
  readonly git: (args: readonly string[], options?: Partial<GitOptions>) => Promise<GitOutput>
  /** Notes for the owner, in the detail of the event. */
  readonly notes: readonly string[]
  /**
   * Commits what the agent changed, with doorward's own identity, and returns the ref in the mirror; undefined
   * when nothing changed.
   */
  readonly commit: (message: string) => Promise<string | undefined>
  /** Removes the worktree. */
  readonly release: () => Promise<void>
}
