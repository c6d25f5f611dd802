import { type PathGlobs, matchesPaths } from '../../../shared/filter/paths.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { EventScope } from '../read-delivery.ts'

/*
 * Which files an event changes, for `paths` of a rule: those of a push stand in its payload, others are known to
 * the workspace or to the API of the sender when the event runs.
 */

/** A pull request of GitHub, or a merge request of GitLab. */
export type ChangeRef = {
  readonly provider: 'github' | 'gitlab'
  readonly repository: string
  readonly number: number
}

/** What an event asks before its agent runs. `change` is there where the workspace cannot tell. */
export type PathsRequest = PathGlobs & { readonly change?: ChangeRef }

type PathsOfRule = Pick<CompiledRule, 'paths' | 'workspace'>

/** Why a rule with `paths` does not run, as far as the payload says. */
export const findPathsMiss = (
  { paths, workspace }: PathsOfRule,
  { event }: Pick<EventScope, 'event'>,
): string | undefined => {
  if (!paths) return undefined
  const files = readPushFiles(event)
  if (files === 'unknown') return undefined
  if (files) return matchesPaths(paths, files) ? undefined : 'no file of the push is one of paths'
  return workspace?.base || findChange(event) ? undefined : 'it changes no files, and has paths'
}

/** What is left to ask; undefined where the payload has said all. */
export const toPathsRequest = (
  { paths, workspace }: PathsOfRule,
  { event }: Pick<EventScope, 'event'>,
): PathsRequest | undefined => {
  if (!paths || readPushFiles(event)) return undefined
  const change = workspace?.base ? undefined : findChange(event)
  return { ...paths, ...(change && { change }) }
}

/** GitHub leaves out further commits of a push; GitLab lists 20, and says how many there are. */
const maxCommits = 2048

/** Undefined for what is no push. */
const readPushFiles = (event: unknown): readonly string[] | 'unknown' | undefined => {
  const commits = valueAt(event, ['commits'])
  if (textAt(event, 'ref') === undefined || !Array.isArray(commits)) return undefined
  const count = valueAt(event, ['total_commits_count'])
  if (commits.length >= maxCommits || (typeof count === 'number' && count > commits.length))
    return 'unknown'
  const lists = commits.flatMap((commit: unknown) =>
    ['added', 'modified', 'removed'].map((kind) => valueAt(commit, [kind])),
  )
  if (!lists.every((list) => Array.isArray(list))) return 'unknown'
  return lists.flat().filter((file) => typeof file === 'string')
}

const findChange = (event: unknown): ChangeRef | undefined => {
  const numberAt = (...path: string[]): number | undefined => {
    const value = valueAt(event, path)
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
  }
  const project = valueAt(event, ['project', 'path_with_namespace'])
  const iid =
    numberAt('merge_request', 'iid') ??
    (valueAt(event, ['object_kind']) === 'merge_request'
      ? numberAt('object_attributes', 'iid')
      : undefined)
  if (typeof project === 'string' && iid !== undefined)
    return { provider: 'gitlab', repository: project, number: iid }
  const repository = valueAt(event, ['repository', 'full_name'])
  const isPull = valueAt(event, ['issue', 'pull_request']) !== undefined
  const number =
    numberAt('pull_request', 'number') ?? (isPull ? numberAt('issue', 'number') : undefined)
  return typeof repository === 'string' && number !== undefined
    ? { provider: 'github', repository, number }
    : undefined
}
