import type { components, operations } from '@octokit/openapi-types'
import { answerIssues, createGithubIssues, type GithubIssues } from './github-issues.ts'
import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitHub's API as its own description has it (@octokit/openapi-types): the bodies that it takes, and the
 * documents that it answers with. It refuses fields that the description does not know, as a misspelled one
 * would have no effect at GitHub.
 */

type BodyOf<Name extends keyof operations> = operations[Name] extends {
  requestBody?: { content: { 'application/json': infer Body } }
}
  ? NonNullable<Body>
  : never
type Schemas = components['schemas']
type Keys<Body> = Readonly<Record<keyof Required<Body>, true>>

export type ReviewBody = BodyOf<'pulls/create-review'>
export type CheckBody = BodyOf<'checks/create'>
export type StatusBody = BodyOf<'repos/create-commit-status'>
export type PullBody = BodyOf<'pulls/create'>
type CommentBody = BodyOf<'issues/create-comment'>
type LineComment = NonNullable<ReviewBody['comments']>[number]

const reviewKeys: Keys<ReviewBody> = { commit_id: true, body: true, event: true, comments: true }
const lineKeys: Keys<LineComment> = {
  path: true,
  position: true,
  body: true,
  line: true,
  side: true,
  start_line: true,
  start_side: true,
}
const statusKeys: Keys<StatusBody> = {
  state: true,
  target_url: true,
  description: true,
  context: true,
}
const pullKeys: Keys<PullBody> = {
  title: true,
  head: true,
  head_repo: true,
  base: true,
  body: true,
  maintainer_can_modify: true,
  draft: true,
  issue: true,
}
const commentKeys: Keys<CommentBody> = { body: true }
type CheckKey = keyof CheckBody
const checkKeys: readonly CheckKey[] = [
  'name',
  'head_sha',
  'external_id',
  'status',
  'conclusion',
  'output',
]

type File = Pick<Schemas['diff-entry'], 'filename' | 'status'> & { readonly patch?: string }

/** A review, and who posted it: the account of the token unless a test says otherwise. */
type PostedReview = Stored<ReviewBody> & { user?: Account }
type Account = Pick<Schemas['simple-user'], 'id' | 'login' | 'type'>
export type Thread = {
  readonly body: string
  readonly path: string
  user: Account
  isOutdated: boolean
  isResolved: boolean
}

const octocat: Account = { login: 'octocat', id: 583_231, type: 'User' }
const bot: Account = { login: 'door[bot]', id: 1, type: 'Bot' }

type Stored<Document> = { -readonly [Key in keyof Document]: Document[Key] }

export type GithubServer = Pick<TargetServer, 'origin' | 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  /** Its issues, labels and people. */
  readonly tracker: GithubIssues
  readonly comments: Stored<Pick<Schemas['issue-comment'], 'id' | 'body'>>[]
  readonly reviews: PostedReview[]
  /** The comments of reviews, each the first of its thread, as GitHub says of them. */
  readonly threads: Thread[]
  readonly checks: CheckBody[]
  readonly statuses: StatusBody[]
  /** The first is #8. */
  readonly pulls: (Stored<PullBody> & { state?: 'closed'; user?: Account })[]
  /** Labels and reviewers, as they were sent, with their path. */
  readonly details: readonly [route: string, body: unknown][]
  /** The commits of branches, by their names. */
  readonly commits: Map<string, string>
  /** The roles of people in acme/door. */
  readonly roles: Map<string, string>
  /** The answers in threads of reviews, with the number of the comment that they answer. */
  readonly replies: { readonly to: number; readonly body: string }[]
  /** The pull request #7 of acme/door. */
  readonly pull: {
    head: string
    base?: string
    files: File[]
    ref?: string
    /** Of its branch: a fork has another. */
    repository?: string
    state?: 'closed'
  }
}

export const headOfPull = 'a'.repeat(40)

type Options = {
  /** An app may create check runs. */
  readonly isApp?: boolean
  /** Of the token. Without repo, only reading works. */
  readonly scopes?: readonly string[]
}

/** Starts one that has the repository acme/door. */
export const startGithubServer = async ({
  isApp = false,
  scopes = ['repo'],
}: Options = {}): Promise<GithubServer> => {
  const comments: GithubServer['comments'] = []
  const reviews: PostedReview[] = []
  const threads: Thread[] = []
  const account = isApp ? bot : octocat
  const tracker = createGithubIssues(account)
  const checks: CheckBody[] = []
  const statuses: StatusBody[] = []
  const pulls: GithubServer['pulls'] = []
  const details: [route: string, body: unknown][] = []
  const pull: GithubServer['pull'] = { head: headOfPull, files: [] }
  const server = await startTargetServer((response, recorded, request) => {
    host = recorded.headers.host ?? ''
    const [status, document] = answer(recorded)
    return json(status, document)(response, recorded, request)
  })

  /** What GitHub says of its pages: at the host of its API. */
  const pageOf = (path: string): string => `http://${host}/acme/door/${path}`
  let host = ''
  const commits = new Map<string, string>()
  const roles = new Map<string, string>()
  const replies: GithubServer['replies'] = []
  const answer = ({ method, path, fields }: Recorded): readonly [number, unknown] => {
    const url = new URL(path, 'http://loopback')
    const [, route = ''] = /^\/api\/v3\/repos\/acme\/door(\/.*)?$/.exec(url.pathname) ?? []
    const page = <Item>(items: readonly Item[]): readonly [number, readonly Item[]] => {
      const [size, number] = ['per_page', 'page'].map((name) => Number(url.searchParams.get(name)))
      return [200, items.slice(((number ?? 1) - 1) * (size ?? 30), (number ?? 1) * (size ?? 30))]
    }
    if (url.pathname === `/api/v3/users/${encodeURIComponent('acme-doorward[bot]')}`)
      return [200, { login: 'acme-doorward[bot]', id: 4711, type: 'Bot' }]
    if (url.pathname === '/api/v3/user')
      return isApp
        ? [403, message('Resource not accessible by integration')]
        : [200, { ...octocat, name: 'The <Octocat>' }]
    if (url.pathname === '/api/graphql') return answerGraphql(fields)
    if (/^\/(pulls\/8\/requested_reviewers|issues\/8\/labels)$/.test(route)) {
      details.push([route, fields])
      return JSON.stringify(fields).includes('nobody') ? [422, message('No')] : [201, {}]
    }
    const asked = `${method} ${route}`
    if (method !== 'GET' && !scopes.includes('repo'))
      if (!(scopes.includes('repo:status') && route.startsWith('/statuses/')))
        return [404, message('Not Found')]
    const ofIssue = answerIssues(tracker, { method, route, fields, account, pageOf })
    if (ofIssue) return ofIssue
    switch (asked) {
      case 'GET ':
        return [200, { default_branch: 'main' } satisfies Partial<Schemas['full-repository']>]
      case 'GET /pulls': {
        const wanted = url.searchParams.get('head')
        return page(
          pulls.flatMap(({ head, body, state = 'open', user = account }, place) => {
            if (`acme:${head}` !== wanted) return []
            const repo = { full_name: 'acme/door' }
            const html_url = pageOf(`pull/${8 + place}`)
            const of = { ref: head, sha: commits.get(head), repo }
            return [{ number: 8 + place, state, body, user, html_url, head: of }]
          }),
        )
      }
      case 'POST /pulls': {
        const opened = checked(fields as PullBody, Object.keys(pullKeys))
        if (opened.base !== 'main') return [422, message('Validation Failed')]
        pulls.push(opened)
        const number = 7 + pulls.length
        const html_url = pageOf(`pull/${number}`)
        return [201, { number, html_url } satisfies Partial<Schemas['pull-request']>]
      }
      case 'GET /pulls/7':
        return [
          200,
          {
            number: 7,
            state: pull.state ?? 'open',
            html_url: pageOf('pull/7'),
            head: {
              sha: pull.head,
              ref: pull.ref,
              repo: { full_name: pull.repository ?? 'acme/door' },
            },
            base: { ref: 'main', sha: pull.base, repo: { default_branch: 'main' } },
          },
        ]
      case 'GET /pulls/7/files':
        return page(pull.files)
      case 'GET /pulls/7/reviews':
        return page(
          reviews.map(({ body = '', user = account }, place) => {
            const html_url = pageOf(`pull/7#pullrequestreview-${place + 1}`)
            return { id: place + 1, body, user, html_url }
          }),
        )
      case 'GET /pulls/7/comments':
        return page([
          ...replies.map(({ body }) => ({ body })),
          ...threads.map(({ body, path, user }) => ({ body, path, user })).toReversed(),
        ])
      case 'POST /pulls/7/reviews':
        return postReview(fields)
      case 'GET /issues/7/comments':
      case 'GET /issues/8/comments':
        return page(comments)
      case 'POST /issues/7/comments':
      case 'POST /issues/8/comments': {
        const { body } = checked(fields as CommentBody, Object.keys(commentKeys))
        const id = comments.length + 1
        const comment = { id, body, html_url: pageOf(`pull/7#issuecomment-${id}`) }
        comments.push(comment)
        return [201, comment satisfies Partial<Schemas['issue-comment']>]
      }
      case `GET /commits/${pull.head}/check-runs`: {
        const runs = checks.filter(({ name }) => name === url.searchParams.get('check_name'))
        return [200, { total_count: runs.length, check_runs: runs }]
      }
      case 'POST /check-runs': {
        if (!isApp) return [403, message('You must authenticate via a GitHub App.')]
        const check = checked(fields as CheckBody, checkKeys)
        if (check.head_sha !== pull.head) return [422, message('No commit found for SHA')]
        checks.push(check)
        return [201, { ...check, id: checks.length }]
      }
      case `POST /statuses/${pull.head}`: {
        const status = checked(fields as StatusBody, Object.keys(statusKeys))
        if ((status.description ?? '').length > 140)
          return [422, message('description is too long (maximum is 140 characters)')]
        statuses.push(status)
        return [201, { ...status, id: statuses.length }]
      }
    }
    const [, place] = /^PUT \/pulls\/7\/reviews\/(\d+)$/.exec(asked) ?? []
    const review = reviews[Number(place) - 1]
    if (review) {
      review.body = checked(fields as CommentBody, Object.keys(commentKeys)).body
      return [200, { id: Number(place), body: review.body }]
    }
    const [, pullNumber] = /^PATCH \/pulls\/(\d+)$/.exec(asked) ?? []
    const changed = pulls[Number(pullNumber) - 8]
    if (changed) {
      changed.body = checked(fields as CommentBody, Object.keys(commentKeys)).body
      return [200, { number: Number(pullNumber), html_url: pageOf(`pull/${pullNumber}`) }]
    }
    const [, login = ''] = /^GET \/collaborators\/([^/]+)\/permission$/.exec(asked) ?? []
    const role_name = roles.get(decodeURIComponent(login))
    if (role_name !== undefined) return [200, { permission: role_name, role_name }]
    const [, first] = /^POST \/pulls\/7\/comments\/(\d+)\/replies$/.exec(asked) ?? []
    // 404 is a comment that was deleted.
    if (first !== undefined && first !== '404') {
      const { body } = checked(fields as CommentBody, Object.keys(commentKeys))
      replies.push({ to: Number(first), body })
      return [201, { id: 900, html_url: pageOf('pull/7#discussion_r900') }]
    }
    const [, id] = /^PATCH \/issues\/comments\/(\d+)$/.exec(asked) ?? []
    const comment = comments.find((one) => String(one.id) === id)
    if (!comment) return [404, message('Not Found')]
    comment.body = checked(fields as CommentBody, Object.keys(commentKeys)).body
    return [200, comment]
  }

  const postReview = (fields: ReviewBody): readonly [number, unknown] => {
    const review = checked(fields, Object.keys(reviewKeys))
    for (const comment of review.comments ?? []) {
      const { path, line, side, start_line, start_side } = checked(comment, Object.keys(lineKeys))
      const file = pull.files.find(({ filename }) => filename === path)
      const hunk = findHunk(file?.patch, Number(line), side === 'LEFT')
      if (hunk === undefined) return [422, message('Line could not be resolved')]
      const first = findHunk(
        file?.patch,
        Number(start_line ?? line),
        (start_side ?? side) === 'LEFT',
      )
      if (first !== hunk)
        return [422, message('Start line must be part of the same hunk as the line.')]
    }
    if (review.event === 'COMMENT' && !review.body) return [422, message('Body is required')]
    if (review.commit_id !== undefined && review.commit_id !== pull.head)
      return [422, message('The commit is not part of the pull request')]
    reviews.push(review)
    for (const { path, body } of review.comments ?? [])
      threads.push({ path, body, user: account, isOutdated: false, isResolved: false })
    const id = reviews.length
    const html_url = pageOf(`pull/7#pullrequestreview-${id}`)
    return [200, { id, html_url, user: account }]
  }

  /** What the two queries of threads answer; an id is the place of the thread. */
  const answerGraphql = ({ query, variables }: Recorded['fields']): readonly [number, unknown] => {
    const { id, number } = variables as { readonly id?: string; readonly number?: number }
    if (String(query).includes('issue(number')) {
      const issue = tracker.issues.find((one) => one.number === number && !one.pull_request)
      if (!issue) return [200, { data: { repository: { issue: null } }, errors: [{}] }]
      const viewerDidAuthor = issue.user.id === account.id
      return [200, { data: { repository: { issue: { viewerDidAuthor } } } }]
    }
    if (String(query).startsWith('mutation')) {
      const thread = threads[Number(id)]
      if (!thread || !scopes.includes('repo')) return [200, { data: null, errors: [{}] }]
      thread.isResolved = true
      return [200, { data: { resolveReviewThread: { thread: { isResolved: true } } } }]
    }
    const nodes = threads.map(({ body, user, isOutdated, isResolved }, place) => {
      const comment = { body, viewerDidAuthor: user.id === account.id }
      return { id: String(place), isOutdated, isResolved, comments: { nodes: [comment] } }
    })
    const reviewThreads = { pageInfo: { hasNextPage: false, endCursor: null }, nodes }
    return [200, { data: { repository: { pullRequest: { reviewThreads } } } }]
  }

  const { origin, requests, next, close } = server
  const apiUrl = `${origin}/api/v3`
  return {
    origin,
    apiUrl,
    requests,
    next,
    close,
    tracker,
    comments,
    reviews,
    threads,
    checks,
    statuses,
    pulls,
    details,
    commits,
    roles,
    replies,
    pull,
  }
}

const message = (text: string): Schemas['basic-error'] => ({
  message: text,
  documentation_url: 'https://docs.github.com/rest',
})

/** The body, when it has no fields but these. */
const checked = <Body extends object>(body: Body, keys: readonly string[]): Body => {
  const foreign = Object.keys(body).filter((key) => !keys.includes(key))
  if (foreign.length > 0) throw new Error(`GitHub knows no field ${foreign.join(', ')}`)
  return body
}

/** The hunk of a diff of which one side has this line. */
const findHunk = (patch = '', wanted: number, isLeft: boolean): string | undefined =>
  patch.split(/^(?=@@ )/m).find((hunk) => {
    const [head = '', ...lines] = hunk.split('\n')
    const start = Number((isLeft ? /-(\d+)/ : /\+(\d+)/).exec(head)?.[1])
    const side = lines.filter((line) => (isLeft ? /^[ -]/ : /^[ +]/).test(line))
    return wanted >= start && wanted < start + side.length
  })
