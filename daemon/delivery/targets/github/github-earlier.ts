import { listAt, textAt, valueAt } from '../../../util/payload-path.ts'
import { DeliveryError } from '../../delivery-error.ts'
import { describeReplaced, type ReviewMarks, tellFailure } from '../../review-marks.ts'
import { findListed, type GithubApi, type GithubRequest } from './github-api.ts'

/*
 * The earlier reviews of a rule on a pull request. Only those of the account that reviews count: others may copy a
 * whole text of ours.
 */

type EarlierReview = { readonly id: number; readonly eventId: string; readonly author: number }

export type Earlier = {
  /** Whose words no newer review has replaced. */
  readonly reviews: readonly EarlierReview[]
  /** The hidden lines of their comments, and of those of reviews that were replaced. */
  readonly comments: ReadonlySet<string>
  /** True where there is one of either. */
  readonly isAny: boolean
}

const none: Earlier = { reviews: [], comments: new Set(), isAny: false }

/** `listed` are the reviews of the pull request. */
export const findEarlier = async (
  request: GithubRequest,
  pull: string,
  marks: ReviewMarks,
  listed: readonly unknown[],
): Promise<Earlier> => {
  const known = listed.flatMap((review) => {
    const text = marks.read(textAt(review, 'body') ?? '')
    const id = numberAt(review, 'id')
    return text && id !== undefined ? [{ ...text, id, author: authorOf(review) ?? 0, review }] : []
  })
  if (known.length === 0) return none
  const isOurs = await readAccount(request)
  const ours = known.filter(({ review }) => isOurs(review))
  if (ours.length === 0) return none
  const path = `${pull}/comments?sort=created&direction=desc`
  const comments = (await listAll(request, path, 'comments')).flatMap((comment) => {
    const text = isOurs(comment) ? marks.read(textAt(comment, 'body') ?? '') : undefined
    return text?.kind === 'comment' ? [text.line] : []
  })
  const reviews = ours.filter(({ kind }) => kind === 'summary')
  return { reviews, comments: new Set(comments), isAny: true }
}

/** All items of a list, as far as ten pages. */
export const listAll = async (
  request: GithubRequest,
  path: string,
  what: string,
): Promise<readonly unknown[]> => {
  const items: unknown[] = []
  await findListed(request, { path, what }, (item) => {
    items.push(item)
    return false
  })
  return items
}

/** Tests for the account of the token. The token of an app cannot ask who it is: its account is a bot's. */
export const readAccount = async (request: GithubRequest): Promise<(item: unknown) => boolean> => {
  const { status, json } = await request('/user', { handles: [403, 404] })
  const id = status === 200 ? numberAt(json, 'id') : undefined
  return (item) =>
    id === undefined ? textAt(item, 'user', 'type') === 'Bot' : authorOf(item) === id
}

const authorOf = (item: unknown): number | undefined => numberAt(item, 'user', 'id')

const numberAt = (value: unknown, ...path: string[]): number | undefined => {
  const found = valueAt(value, path)
  return typeof found === 'number' && Number.isSafeInteger(found) ? found : undefined
}

type Retiring = {
  readonly pull: string
  readonly marks: ReviewMarks
  readonly earlier: Earlier
  readonly api: GithubApi
}

/**
 * Replaces the words of earlier reviews by a link to the newer one, and resolves their threads on lines that are
 * gone. The newer one is posted, so what fails here is only told: returns notes for the event.
 */
export const retireEarlier = async (
  request: GithubRequest,
  { pull, marks, earlier, api }: Retiring,
  newer: unknown,
): Promise<string[]> => {
  if (!earlier.isAny) return []
  const url = api.toMade('review', { json: { html_url: textAt(newer, 'html_url') } })?.url
  const replace = async () => {
    for (const { id, eventId, author } of earlier.reviews) {
      if (author !== authorOf(newer)) continue
      const { body } = marks.replaced(eventId, describeReplaced(url))
      // docs.github.com/rest/pulls/reviews#update-a-review-for-a-pull-request
      await request(`${pull}/reviews/${id}`, { method: 'PUT', body: { body } })
    }
  }
  return [
    ...(await tellFailure('github', 'an earlier review keeps its words', replace)),
    ...(await tellFailure('github', 'threads on lines that are gone stay open', async () =>
      resolveGone(request, pull, marks),
    )),
  ]
}

/** docs.github.com/graphql/reference/objects#pullrequestreviewthread: the REST API does not know threads. */
const threadsQuery = `query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { id isResolved isOutdated comments(first: 1) { nodes { body viewerDidAuthor } } }
    }
  } }
}`

const resolveMutation =
  'mutation ($id: ID!) { resolveReviewThread(input: { threadId: $id }) { thread { isResolved } } }'

const maxThreadPages = 10

const resolveGone = async (
  request: GithubRequest,
  pull: string,
  marks: ReviewMarks,
): Promise<void> => {
  const [, owner, name, number] = /^\/repos\/([^/]+)\/([^/]+)\/pulls\/(\d+)$/.exec(pull) ?? []
  const ask = async (query: string, variables: object): Promise<unknown> => {
    const { json } = await request('/graphql', { body: { query, variables } })
    if (listAt(json, 'errors').length === 0) return json
    // It needs more than to comment.
    throw new DeliveryError('permanent', 'the token may not resolve threads')
  }
  let after: string | undefined
  for (let page = 0; page < maxThreadPages; page += 1) {
    const found = await ask(threadsQuery, { owner, name, number: Number(number), after })
    const threads = ['data', 'repository', 'pullRequest', 'reviewThreads']
    for (const thread of listAt(found, ...threads, 'nodes')) {
      const [comment] = listAt(thread, 'comments', 'nodes')
      const isGone =
        valueAt(thread, ['isOutdated']) === true && valueAt(thread, ['isResolved']) === false
      const isOurs =
        valueAt(comment, ['viewerDidAuthor']) === true &&
        marks.read(textAt(comment, 'body') ?? '')?.kind === 'comment'
      if (isGone && isOurs) await ask(resolveMutation, { id: textAt(thread, 'id') })
    }
    after = textAt(found, ...threads, 'pageInfo', 'endCursor')
    if (valueAt(found, [...threads, 'pageInfo', 'hasNextPage']) !== true || !after) return
  }
}
