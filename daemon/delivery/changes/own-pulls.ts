import { hash } from 'node:crypto'
import { textAt } from '../../util/payload-path.ts'
import { DeliveryError } from '../delivery-error.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { AgentReply } from '../sender.ts'
import type { GithubRequest } from '../targets/github/github-api.ts'
import { listAll, readAccount } from '../targets/github/github-earlier.ts'

/*
 * One pull request for each rule and subject. Its branch has a name of both; its text has a hidden line that only
 * this home can make, and counts in pull requests of the account that pushes alone, as others can copy it.
 */

export type PullPlace = {
  readonly branch: string
  /** The hidden line; undefined for an event that is about nothing in particular. */
  readonly line: string | undefined
}

const maxBranches = 20

/** Where a pull request of this rule for the subject of this event is, or will be. */
export const toPlace = (
  { eventId, webhook, rule, subject }: AgentReply,
  address: string,
  marks: CommentMarks,
): PullPlace => {
  // Such a key is only the name of an event.
  if (!subject || subject.kind === 'event')
    return { branch: `doorward/${eventId}`, line: undefined }
  const id = JSON.stringify(['pull request', webhook, rule ?? '', address, subject.key])
  const name = (rule ?? webhook).replaceAll(/[^A-Za-z0-9_-]+/g, '-').replaceAll(/^-+|-+$/g, '')
  const digest = hash('sha256', id, 'hex').slice(0, 10)
  return { branch: `doorward/${name || 'change'}-${digest}`, line: marks.keyLine(id) }
}

export type FoundPulls = {
  /** The open one, or the branch for a new one. */
  readonly branch: string
  readonly open: unknown
  /** The newest of this rule and subject, also a closed one. */
  readonly newest: unknown
  /** True where that is closed, and has this commit: an earlier attempt had opened it. */
  readonly hasArrived?: boolean
}

/**
 * Looks for pull requests of this place. One that is closed or merged may have left its branch, so the next gets a
 * name with a number. Throws `DeliveryError` where the branch is the open pull request of someone else.
 */
export const findPulls = async (
  request: GithubRequest,
  name: string,
  { branch: first, line }: PullPlace,
  commit: string,
): Promise<FoundPulls> => {
  const [owner = ''] = name.split('/')
  let isOurs: ((item: unknown) => boolean) | undefined
  let newest: unknown
  for (let number = 1; number <= maxBranches; number += 1) {
    const branch = number === 1 ? first : `${first}-${number}`
    const query = `state=all&head=${encodeURIComponent(`${owner}:${branch}`)}`
    const listed = await listAll(request, `/repos/${name}/pulls?${query}`, 'pull requests')
    const pulls = listed.filter(
      (pull) => textAt(pull, 'head', 'repo', 'full_name')?.toLowerCase() === name.toLowerCase(),
    )
    if (pulls.length === 0) return { branch, open: undefined, newest }
    isOurs ??= await readAccount(request)
    const ours = pulls.filter(
      (pull) =>
        isOurs?.(pull) && (line === undefined || textAt(pull, 'body')?.includes(line) === true),
    )
    newest = ours[0] ?? newest
    const open = pulls.find((pull) => textAt(pull, 'state') === 'open')
    if (open !== undefined && ours.includes(open)) return { branch, open, newest }
    const closed = ours.find((pull) => textAt(pull, 'head', 'sha') === commit)
    if (closed !== undefined) return { branch, open, newest: closed, hasArrived: true }
    if (open !== undefined || line === undefined)
      throw new DeliveryError(
        'permanent',
        `the branch ${branch} has a pull request that doorward did not open, or whose mark was removed`,
        { hint: 'close it, and delete the branch' },
      )
  }
  throw new DeliveryError('permanent', `there were ${maxBranches} pull requests for this already`, {
    hint: `delete their branches ${first}-…`,
  })
}

/** The text of a pull request, with its mark; `Fixes #n` where the event is about an issue of the repository. */
export const toPullBody = (
  { eventId, subject }: AgentReply,
  text: string,
  line: string | undefined,
  repositoryUrl: string,
  marks: CommentMarks,
): { readonly mark: string; readonly body: string } => {
  const issues = `${repositoryUrl}/issues/`.toLowerCase()
  const url = subject?.url?.toLowerCase() ?? ''
  const [number] = url.startsWith(issues) ? (/^\d+$/.exec(url.slice(issues.length)) ?? []) : []
  const words = number === undefined ? text : `${text}\n\nFixes #${number}`
  if (line === undefined) return { mark: '', body: words }
  const marked = `${line}\n${words}`
  const mark = marks.markFor(eventId, 1, marked)
  return { mark, body: marks.toBody(mark, marked) }
}
