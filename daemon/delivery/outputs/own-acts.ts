import { listAt, textAt, textOfValue, valueAt } from '../../util/payload-path.ts'

/*
 * How GitHub and GitLab tell of what an answer requested: labels, people and closed issues have no mark, and a new
 * issue has that of its text.
 */

export type Act = 'labeled' | 'assigned' | 'closed'

type Done = {
  readonly act: Act
  /** The repository or project. */
  readonly place: string
  /** GitHub's number; GitLab's with its sign. */
  readonly number: string
  /** The labels or people; one empty name for a closed issue. */
  readonly names: readonly string[]
  readonly at: number
}

/** The change of an issue, pull request or merge request that an event tells of. */
export const findAct = (payload: unknown): Done | undefined =>
  textAt(payload, 'repository', 'full_name') === undefined ? atGitlab(payload) : atGithub(payload)

/** `issues.labeled`, `pull_request.assigned`, `issues.closed`. */
const atGithub = (payload: unknown): Done | undefined => {
  const act = textAt(payload, 'action')
  if (act !== 'labeled' && act !== 'assigned' && act !== 'closed') return undefined
  const kind = valueAt(payload, ['pull_request']) === undefined ? 'issue' : 'pull_request'
  const at = Date.parse(textAt(payload, kind, 'updated_at') ?? '')
  const name = {
    labeled: textAt(payload, 'label', 'name'),
    assigned: textAt(payload, 'assignee', 'login'),
    closed: kind === 'issue' ? '' : undefined,
  }[act]
  if (name === undefined || Number.isNaN(at)) return undefined
  const place = textAt(payload, 'repository', 'full_name') ?? ''
  return { act, place, number: textOfValue(valueAt(payload, [kind, 'number'])), names: [name], at }
}

/** GitLab tells of changes by their fields; one that has others too is by somebody else. */
const atGitlab = (payload: unknown): Done | undefined => {
  const place = textAt(payload, 'project', 'path_with_namespace')
  const at = Date.parse(toIso(textAt(payload, 'object_attributes', 'updated_at') ?? ''))
  if (place === undefined || Number.isNaN(at)) return undefined
  const sign = textAt(payload, 'object_kind') === 'merge_request' ? '!' : '#'
  const number = `${sign}${textOfValue(valueAt(payload, ['object_attributes', 'iid']))}`
  const action = textAt(payload, 'object_attributes', 'action')
  if (action === 'close') return { act: 'closed', place, number, names: [''], at }
  if (action !== 'update') return undefined
  const changes = Object.keys(valueAt(payload, ['changes']) ?? {})
  const [field, another] = changes.filter((name) => !/^(?:updated_at|updated_by_id)$/.test(name))
  if (another !== undefined || (field !== 'labels' && field !== 'assignees')) return undefined
  const key = field === 'labels' ? 'title' : 'username'
  const [before, after] = ['previous', 'current'].map((when) =>
    listAt(payload, 'changes', field, when).flatMap((one) => textAt(one, key) ?? []),
  )
  const isOnlyMore = before?.every((name) => after?.includes(name)) ?? false
  const names = after?.filter((name) => !before?.includes(name)) ?? []
  return isOnlyMore
    ? { act: field === 'labels' ? 'labeled' : 'assigned', place, number, names, at }
    : undefined
}

/** `2026-11-28 18:00:00 UTC` of GitLab's hooks. */
const toIso = (text: string): string => text.replace(/ (?=\d)/, 'T').replace(/ UTC$/, 'Z')

/** GitHub tells of the labels of a new issue one by one, in the second after it. */
const newMs = 10_000

/** True for an event that tells of a new issue. */
export const isNewIssue = (payload: unknown): boolean => {
  const action = textAt(payload, 'action') ?? textAt(payload, 'object_attributes', 'action')
  if (action === 'opened' || action === 'open') return true
  if (action !== 'labeled') return false
  const [created, updated] = ['created_at', 'updated_at'].map((name) =>
    Date.parse(textAt(payload, 'issue', name) ?? ''),
  )
  return (updated ?? Number.NaN) - (created ?? Number.NaN) < newMs
}

/** The text of an issue in the events of issues, not in those of its comments. */
export const findIssueText = (payload: unknown): string =>
  valueAt(payload, ['comment']) === undefined
    ? (textAt(payload, 'issue', 'body') ??
      textAt(payload, 'object_attributes', 'description') ??
      '')
    : ''
