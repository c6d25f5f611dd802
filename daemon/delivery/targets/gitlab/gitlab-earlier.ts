import { listAt, textAt, valueAt } from '../../../util/payload-path.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import {
  describeReplaced,
  type EarlierText,
  type ReviewMarks,
  tellFailure,
} from '../../review-marks.ts'
import type { GitlabRequest } from './gitlab.ts'

/*
 * The earlier reviews of a rule on a merge request: notes with words, and threads on lines. Only those of the account
 * that reviews count: others may copy a whole text of ours.
 */

type EarlierNote = EarlierText & {
  readonly id: number
  readonly discussion: string
  readonly isOpen: boolean
  /** The head of the merge request at which GitLab still finds its line. */
  readonly head: string | undefined
}

export type Earlier = {
  /** Words that no newer review has replaced. */
  readonly summaries: readonly EarlierNote[]
  readonly comments: readonly EarlierNote[]
}

const perPage = 100
const maxPages = 10

export const findEarlier = async (
  request: GitlabRequest,
  {
    merge,
    apiUrl,
    marks,
  }: { readonly merge: string; readonly apiUrl: string; readonly marks: ReviewMarks },
): Promise<Earlier> => {
  const known: (EarlierNote & { readonly author: unknown })[] = []
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await asReadOnly(
      request(`${merge}/discussions?per_page=${perPage}&page=${page}`),
    )
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'gitlab returned no discussions')
    const discussions = json as readonly unknown[]
    for (const discussion of discussions) {
      const [note] = listAt(discussion, 'notes')
      const text = marks.read(textAt(note, 'body') ?? '')
      const id = valueAt(note, ['id'])
      if (!text || typeof id !== 'number') continue
      known.push({
        ...text,
        id,
        discussion: textAt(discussion, 'id') ?? '',
        author: valueAt(note, ['author', 'id']),
        isOpen: valueAt(note, ['resolvable']) === true && valueAt(note, ['resolved']) === false,
        head: textAt(note, 'position', 'head_sha'),
      })
    }
    if (discussions.length < perPage) break
  }
  if (known.length === 0) return { summaries: [], comments: [] }
  const { json } = await asReadOnly(request(`${apiUrl}/user`, undefined, [403]))
  const account = json['id']
  const ours = known.filter(({ author }) => author !== undefined && author === account)
  return {
    summaries: ours.filter(({ kind }) => kind === 'summary'),
    comments: ours.filter(({ kind }) => kind === 'comment'),
  }
}

type Retiring = {
  readonly merge: string
  readonly marks: ReviewMarks
  readonly earlier: Earlier
  /** The hidden lines of what the answer says: their threads stay open. */
  readonly lines: ReadonlySet<string>
  /** The page of the newer review. */
  readonly url: string | undefined
}

/**
 * Replaces the words of earlier reviews by a link to the newer one, and resolves their threads on lines that are
 * gone. The newer one is posted, so what fails here is only told: returns notes for the event.
 */
export const retireEarlier = async (
  request: GitlabRequest,
  { merge, marks, earlier, lines, url }: Retiring,
): Promise<string[]> => {
  const replace = async () => {
    for (const { id, eventId } of earlier.summaries) {
      const { body } = marks.replaced(eventId, describeReplaced(url))
      await request(`${merge}/notes/${id}`, { body }, [], 'PUT')
    }
  }
  const open = earlier.comments.filter(({ isOpen, line }) => isOpen && !lines.has(line))
  const resolve = async () => {
    if (open.length === 0) return
    const { json } = await asReadOnly(request(merge))
    const head = textAt(json, 'diff_refs', 'head_sha')
    // GitLab moves the position of a line to each new head, as long as the line is there.
    for (const note of open)
      if (head !== undefined && note.head !== undefined && note.head !== head)
        await request(`${merge}/discussions/${note.discussion}`, { resolved: true }, [], 'PUT')
  }
  return [
    ...(await tellFailure('gitlab', 'an earlier review keeps its words', replace)),
    ...(await tellFailure('gitlab', 'threads on lines that are gone stay open', resolve)),
  ]
}
