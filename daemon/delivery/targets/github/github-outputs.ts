import { textAt, valueAt, listAt } from '../../../util/payload-path.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import type { CommentMarks, OwnMessages } from '../../loop-guard.ts'
import { listNames } from '../../outputs/actions.ts'
import type { OutputAction } from '../../../../shared/targets/outputs.ts'
import { did, dropped, readAction, toCommentMessage } from '../../outputs/action.ts'
import type { Attempt, Message, Sender, Sent } from '../../sender.ts'
import type { Grant } from '../../token.ts'
import { createGithub } from './github.ts'
import { findListed, type GithubApi, type GithubRequest, type Hints } from './github-api.ts'

type Permissions = Grant['permissions']

/** A pull request is an issue too: either permission is enough for what is about one. */
const onSubject: Permissions = { issues: 'write', pull_requests: 'write' }

/**
 * The requests of an answer at GitHub, one action for each message: labels and people of the issue or pull request
 * (docs.github.com/rest/issues/labels, /assignees), a comment, and issues of the repository (docs.github.com/rest/issues).
 */
export const createGithubOutputs = (
  api: GithubApi,
  marks: CommentMarks,
  messages: OwnMessages,
): Sender => {
  const comments = createGithub(api, marks)
  return {
    isIdempotent: true,
    server: api.origin,
    send: async (message, attempt) => {
      const action = readAction(message)
      if (action.kind === 'comment')
        return did('comment', await comments.send(toCommentMessage(message, action.body), attempt))
      const [repository = '', number = ''] = message.address.split('#')
      const permissions: Permissions =
        action.kind === 'labels' || action.kind === 'assign' ? onSubject : { issues: 'write' }
      const grant = { repository, permissions }
      return api({ attempt, hints, grant, bot: message.reply.bot }, async (request) =>
        act({ action, request, repository, number, api, marks, messages, message, attempt }),
      )
    },
  }
}

type Acting<Kind = OutputAction['kind']> = {
  readonly action: Extract<OutputAction, { readonly kind: Kind }>
  readonly request: GithubRequest
  readonly repository: string
  readonly number: string
  readonly api: GithubApi
  readonly marks: CommentMarks
  readonly messages: OwnMessages
  readonly message: Message
  readonly attempt: Attempt
}

const act = async (acting: Acting): Promise<Sent> => {
  const { action } = acting
  switch (action.kind) {
    case 'labels':
      return setLabels({ ...acting, action })
    case 'assign':
      return assign({ ...acting, action })
    case 'issue':
      return openIssue({ ...acting, action })
    case 'close':
      return closeIssue({ ...acting, action })
    default:
      throw new Error('a comment is sent as one')
  }
}

/** GitHub would make a label that it does not have. */
const setLabels = async ({
  action: { labels: wanted },
  request,
  repository,
  number,
  messages,
}: Acting<'labels'>): Promise<Sent> => {
  const labels: string[] = []
  const missing: string[] = []
  for (const label of wanted) {
    const path = `/repos/${repository}/labels/${encodeURIComponent(label)}`
    const { status, json } = await asReadOnly(request(path, { handles: [404] }))
    if (status === 404) missing.push(label)
    else labels.push(textAt(json, 'name') ?? label)
  }
  const noSuch = missing.length > 0 && `the repository has no label ${listNames(missing)}`
  if (labels.length === 0) return dropped('labels', noSuch || 'no label is left')
  messages.rememberActs('labeled', repository, number, labels)
  const path = `/repos/${repository}/issues/${number}/labels`
  const { json } = await request(path, { body: { labels } })
  const set = Object.values(json).map((label) => textAt(label, 'name')?.toLowerCase())
  const lost = labels.filter((label) => !set.includes(label.toLowerCase()))
  return did(
    'labels',
    { note: `labels ${labels.filter((label) => !lost.includes(label)).join(', ')}` },
    noSuch,
    lost.length > 0 && `GitHub did not set ${listNames(lost)}`,
  )
}

/** GitHub ignores people who cannot be assigned, without a word. */
const assign = async ({
  action: { assign: wanted },
  request,
  repository,
  number,
  messages,
}: Acting<'assign'>): Promise<Sent> => {
  const path = `/repos/${repository}/issues/${number}/assignees`
  messages.rememberActs('assigned', repository, number, wanted)
  const { json } = await request(path, { body: { assignees: wanted } })
  const people = listAt(json, 'assignees').map((one) => textAt(one, 'login')?.toLowerCase())
  const lost = wanted.filter((name) => !people.includes(name.toLowerCase()))
  const refused = lost.length > 0 && `GitHub does not let ${listNames(lost)} be assigned there`
  if (refused && lost.length === wanted.length) return dropped('assign', refused)
  const taken = wanted.filter((name) => !lost.includes(name))
  return did('assign', { note: `assigned ${taken.join(', ')}` }, refused)
}

/** Maximum age of an issue of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

const openIssue = async ({
  action: { title, body: text, labels },
  request,
  repository,
  api,
  marks,
  message: { reply, part },
  attempt,
}: Acting<'issue'>): Promise<Sent> => {
  const mark = marks.markFor(reply.eventId, part, text)
  const issues = `/repos/${repository}/issues`
  if (attempt.mayHaveArrived) {
    const since = new Date(Date.now() - maxAgeMs).toISOString()
    const found = await findListed(
      request,
      { path: `${issues}?state=all&sort=created&since=${since}`, what: 'issues' },
      (issue) => textAt(issue, 'body')?.startsWith(mark) ?? false,
    )
    if (found !== undefined) return did('issue', 'an earlier attempt had arrived')
  }
  const body = { title, body: marks.toBody(mark, text), ...(labels.length > 0 && { labels }) }
  const response = await request(issues, { body })
  return did('issue', { made: api.toMade(`issue #${String(response.json['number'])}`, response) })
}

const closeIssue = async ({
  action: { number, own },
  request,
  repository,
  api,
  marks,
  messages,
}: Acting<'close'>): Promise<Sent> => {
  const path = `/repos/${repository}/issues/${number}`
  const found = await asReadOnly(request(path, { handles: [404, 410] }))
  if (found.status >= 400) return dropped('close', `there is no issue #${number}`)
  if (valueAt(found.json, ['pull_request']) !== undefined)
    return dropped('close', `#${number} is a pull request`)
  if (textAt(found.json, 'state') === 'closed')
    return did('close', { note: `#${number} was closed already` })
  const isOwn =
    marks.isOwn(textAt(found.json, 'body') ?? '') && (await isByUs(request, repository, number))
  if (own && !isOwn)
    return dropped('close', `doorward did not open #${number}, or its text was edited`)
  messages.rememberActs('closed', repository, String(number), [''])
  const body = { state: 'closed', state_reason: 'completed' }
  const response = await request(path, { method: 'PATCH', body })
  return did('close', { made: api.toMade(`closed #${number}`, response) })
}

/** A mark can be copied with its text; only GitHub knows whose issue it is, also for the token of a bot. */
const isByUs = async (
  request: GithubRequest,
  repository: string,
  number: number,
): Promise<boolean> => {
  const [owner, name] = repository.split('/')
  const { json } = await asReadOnly(
    request('/graphql', { body: { query: authorQuery, variables: { owner, name, number } } }),
  )
  if (listAt(json, 'errors').length > 0)
    throw new DeliveryError('permanent', `who opened #${number} cannot be read`)
  return valueAt(json, ['data', 'repository', 'issue', 'viewerDidAuthor']) === true
}

const authorQuery = `query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) { viewerDidAuthor } }
}`

const hints: Hints = {
  403: 'the token may not change issues there: it needs the scope repo, or write access to issues; or the conversation is locked',
  404: 'there is no such issue, or the token may not see it (scope repo)',
  410: 'the issue was deleted, or the repository has no issues',
  422: 'GitHub rejects this',
}
