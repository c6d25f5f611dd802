import { isAddress, type SentKind } from '../../../shared/targets/schema.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'

/*
 * The address of what an event of GitHub or GitLab is about, for the targets of `outputs`. It comes from the payload,
 * which the sender has signed, and from nothing else.
 */

/** Undefined where the event is about nothing that such a target could be at. */
export const findSubjectAddress = (kind: SentKind, payload: unknown): string | undefined => {
  const address = kind.startsWith('gitlab') ? atGitlab(kind, payload) : atGithub(kind, payload)
  return address !== undefined && isAddress(kind, address) ? address : undefined
}

const atGithub = (kind: SentKind, payload: unknown): string | undefined => {
  const repository = textAt(payload, 'repository', 'full_name')
  if (repository === undefined) return undefined
  const pull = isPullComment(payload)
    ? numberAt(payload, 'issue', 'number')
    : numberAt(payload, 'pull_request', 'number')
  const number = pull ?? numberAt(payload, 'issue', 'number')
  switch (kind) {
    case 'github-outputs':
      return number === undefined ? repository : `${repository}#${number}`
    case 'github-check':
      return `${repository}@${findCommit(payload) ?? ''}`
    case 'pull-request':
      return repository
    default:
      return pull === undefined ? undefined : `${repository}#${pull}`
  }
}

/** GitHub calls a pull request an issue in the events of its comments and labels. */
const isPullComment = (payload: unknown): boolean =>
  valueAt(payload, ['issue', 'pull_request']) !== undefined

/** The commit that an event of GitHub is about; none for a branch that was deleted. */
export const findCommit = (payload: unknown): string | undefined =>
  commitPlaces
    .map((place) => textAt(payload, ...place))
    .find((text = '') => /^[0-9a-f]{40}$/.test(text) && !/^0+$/.test(text))

const commitPlaces = [
  ['pull_request', 'head', 'sha'],
  ['check_run', 'head_sha'],
  ['check_suite', 'head_sha'],
  ['workflow_run', 'head_sha'],
  ['after'],
] as const

const atGitlab = (kind: SentKind, payload: unknown): string | undefined => {
  const project = textAt(payload, 'project', 'path_with_namespace')
  if (project === undefined) return undefined
  const type = textAt(payload, 'object_kind') ?? ''
  const own = numberAt(payload, 'object_attributes', 'iid')
  const merge = type === 'merge_request' ? own : numberAt(payload, 'merge_request', 'iid')
  if (merge !== undefined) return `${project}!${merge}`
  if (kind === 'gitlab-review') return undefined
  const issue = ['issue', 'work_item'].includes(type) ? own : numberAt(payload, 'issue', 'iid')
  return issue === undefined ? project : `${project}#${issue}`
}

const numberAt = (payload: unknown, ...path: readonly string[]): number | undefined => {
  const value = valueAt(payload, path)
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}
