import { listAt, textAt, valueAt } from '../../../util/payload-path.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import type { CommentMarks, OwnMessages } from '../../loop-guard.ts'
import { did, dropped, readAction, toCommentMessage } from '../../outputs/action.ts'
import { listNames } from '../../outputs/actions.ts'
import type { OutputAction } from '../../../../shared/targets/outputs.ts'
import { type Attempt, type Message, type Sender, type Sent, toMade } from '../../sender.ts'
import { needsOf, type TokenSource, withToken } from '../../token.ts'
import { createGitlab, createGitlabRequest, gitlabApiUrl, type GitlabRequest } from './gitlab.ts'

/**
 * The requests of an answer at GitLab, one action for each message: labels and people of the issue or merge request
 * (docs.gitlab.com/api/issues, /merge_requests), a note, and issues of the project.
 */
export const createGitlabOutputs = (
  apiUrl = gitlabApiUrl,
  token: TokenSource,
  marks: CommentMarks,
  messages: OwnMessages,
): Sender => {
  const notes = createGitlab(apiUrl, token, marks)
  return {
    isIdempotent: true,
    server: new URL(apiUrl).origin,
    needs: needsOf(token, ['api']),
    send: async (message, attempt) => {
      const action = readAction(message)
      if (action.kind === 'comment')
        return did('comment', await notes.send(toCommentMessage(message, action.body), attempt))
      const [, path = '', sign = '', number = ''] =
        /^([^#!]+)([#!]?)(\d*)$/.exec(message.address) ?? []
      const project = `${apiUrl}/projects/${encodeURIComponent(path)}`
      const item = `${project}/${sign === '!' ? 'merge_requests' : 'issues'}/${number}`
      const place = { path, name: `${sign}${number}`, project, item, apiUrl }
      return withToken(token, async (accessToken) => {
        const request = createGitlabRequest(accessToken, attempt)
        return act({ action, request, place, marks, messages, message, attempt })
      })
    },
  }
}

type Acting<Kind = OutputAction['kind']> = {
  readonly action: Extract<OutputAction, { readonly kind: Kind }>
  readonly request: GitlabRequest
  readonly place: {
    readonly path: string
    /** `#7` or `!7`. */
    readonly name: string
    /** Both are URLs of the API. */
    readonly project: string
    readonly item: string
    readonly apiUrl: string
  }
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

/** GitLab would make a label that it does not have; no name of one has a comma. */
const setLabels = async ({
  action: { labels: wanted },
  request,
  place: { path, name, project, item },
  messages,
}: Acting<'labels'>): Promise<Sent> => {
  const labels: string[] = []
  const missing: string[] = []
  for (const label of wanted) {
    const to = `${project}/labels/${encodeURIComponent(label)}`
    const { status } = label.includes(',')
      ? { status: 404 }
      : await asReadOnly(request(to, undefined, [404]))
    if (status === 404) missing.push(label)
    else labels.push(label)
  }
  const noSuch = missing.length > 0 && `the project has no label ${listNames(missing)}`
  if (labels.length === 0) return dropped('labels', noSuch || 'no label is left')
  messages.rememberActs('labeled', path, name, labels)
  await request(item, { add_labels: labels.join(',') }, [], 'PUT')
  return did('labels', { note: `labels ${labels.join(', ')}` }, noSuch)
}

/** GitLab assigns by number, replaces who is there, and in its free tier keeps the first alone. */
const assign = async ({
  action: { assign: wanted },
  request,
  place: { path, name, item, apiUrl },
  messages,
}: Acting<'assign'>): Promise<Sent> => {
  const found = new Map<string, number>()
  for (const person of wanted) {
    const to = `${apiUrl}/users?username=${encodeURIComponent(person)}`
    const { json } = await asReadOnly(request(to))
    const user = Object.values(json).find(
      (one) => textAt(one, 'username')?.toLowerCase() === person.toLowerCase(),
    )
    const id = toId(user)
    if (id !== undefined) found.set(person, id)
  }
  const unknown = wanted.filter((person) => !found.has(person))
  const noSuch = unknown.length > 0 && `GitLab knows no ${listNames(unknown)}`
  if (found.size === 0) return dropped('assign', noSuch || 'no one is left')
  const before = idsIn((await asReadOnly(request(item))).json)
  const ids = [...new Set([...before, ...found.values()])]
  messages.rememberActs('assigned', path, name, [...found.keys()])
  const { json } = await request(item, { assignee_ids: ids }, [], 'PUT')
  const after = idsIn(json)
  const lost = [...found].flatMap(([person, id]) => (after.includes(id) ? [] : [person]))
  const refused = lost.length > 0 && `GitLab did not assign ${listNames(lost)}`
  if (refused && lost.length === found.size)
    return dropped('assign', noSuch ? `${noSuch}; ${refused}` : refused)
  const taken = [...found.keys()].filter((person) => !lost.includes(person))
  return did('assign', { note: `assigned ${taken.join(', ')}` }, noSuch, refused)
}

const toId = (user: unknown): number | undefined => {
  const id = valueAt(user, ['id'])
  return typeof id === 'number' && Number.isSafeInteger(id) ? id : undefined
}

const idsIn = (item: unknown): number[] =>
  listAt(item, 'assignees').flatMap((one) => toId(one) ?? [])

/** Maximum age of an issue of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

const openIssue = async ({
  action: { title, body: text, labels },
  request,
  place: { project, apiUrl },
  marks,
  message: { reply, part },
  attempt,
}: Acting<'issue'>): Promise<Sent> => {
  const mark = marks.markFor(reply.eventId, part, text)
  if (attempt.mayHaveArrived) {
    const since = new Date(Date.now() - maxAgeMs).toISOString()
    const to = `${project}/issues?scope=created_by_me&per_page=100&created_after=${since}`
    const { json } = await asReadOnly(request(to))
    // A cut or foreign response does not say that it is missing.
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'gitlab returned no issues')
    if (Object.values(json).some((one) => textAt(one, 'description')?.startsWith(mark)))
      return did('issue', 'an earlier attempt had arrived')
  }
  const { json } = await request(`${project}/issues`, {
    title,
    description: marks.toBody(mark, text),
    ...(labels.length > 0 && { labels: labels.join(',') }),
  })
  return did('issue', { made: toPage(`issue #${String(json['iid'])}`, json, apiUrl) })
}

const closeIssue = async ({
  action: { number, own },
  request,
  place: { path, project, apiUrl },
  marks,
  messages,
}: Acting<'close'>): Promise<Sent> => {
  const to = `${project}/issues/${number}`
  const { status, json } = await asReadOnly(request(to, undefined, [404]))
  if (status === 404) return dropped('close', `there is no issue #${number}`)
  if (textAt(json, 'state') === 'closed')
    return did('close', { note: `#${number} was closed already` })
  // A mark can be copied with its text.
  const isOwn =
    marks.isOwn(textAt(json, 'description') ?? '') &&
    toId((await asReadOnly(request(`${apiUrl}/user`))).json) === valueAt(json, ['author', 'id'])
  if (own && !isOwn)
    return dropped('close', `doorward did not open #${number}, or its text was edited`)
  messages.rememberActs('closed', path, `#${number}`, [''])
  const response = await request(to, { state_event: 'close' }, [], 'PUT')
  return did('close', { made: toPage(`closed #${number}`, response.json, apiUrl) })
}

const toPage = (what: string, json: unknown, apiUrl: string): Sent['made'] =>
  toMade(what, textAt(json, 'web_url'), apiUrl.replace(/\/api\/v4$/, ''))
