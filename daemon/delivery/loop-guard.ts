import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../../shared/constant-time.ts'
import { textAt } from '../util/payload-path.ts'
import { BoundedMap } from '../util/collections.ts'
import { type Act, findAct, findIssueText, isNewIssue } from './outputs/own-acts.ts'
import { withDeadline } from '../../shared/deadline.ts'

/*
 * Events about messages and comments that this home wrote are ignored: else an answer would trigger the
 * webhook that it answers.
 */

export type LoopGuard = {
  /** Why an event is ignored; undefined for events that are not about our own messages. */
  readonly ownDetail: (payload: unknown) => string | undefined
  /** The event of our own check run, where somebody at GitHub wants it to run again. */
  readonly pressedEvent: (payload: unknown) => string | undefined
  /** While it is pending, an event of Slack may be about a message whose name is not yet known. */
  readonly posted: () => Promise<void> | undefined
}

export const createLoopGuard = (marks: CommentMarks, messages: OwnMessages): LoopGuard => ({
  ownDetail: (payload) => {
    if (marks.isOwnComment(payload)) return 'it is about our own comment'
    if (messages.isOwnStatus(payload)) return 'it is about our own commit status'
    if (messages.isOwnCommit(payload)) return 'it is about our own commit'
    if (marks.isOwnIssue(payload)) return 'it is about our own issue'
    if (messages.isOwnAct(payload)) return 'it is about what doorward itself did there'
    return messages.isOwnMessage(payload) ? 'it is about our own message' : undefined
  },
  pressedEvent: (payload) => {
    const action = textAt(payload, 'action')
    const isOurs =
      action === 'rerequested' ||
      (action === 'requested_action' && isButton(textAt(payload, 'requested_action', 'identifier')))
    return isOurs ? marks.readCheck(payload)?.eventId : undefined
  },
  posted: () => messages.posted(),
})

/**
 * True for a message in Slack that the app itself has posted, also in an earlier run of the daemon. Only an app that
 * no one else uses may ignore them, as that of a socket.
 */
export const isByOwnApp = (payload: unknown): boolean => {
  const app = textAt(payload, 'api_app_id')
  if (app === undefined) return false
  return [[], ['message'], ['previous_message']].some(
    (inner) =>
      textAt(payload, 'event', ...inner, 'app_id') === app ||
      textAt(payload, 'event', ...inner, 'bot_profile', 'app_id') === app,
  )
}

const maxMessages = 1000
const maxWaitMs = 2000

/**
 * Our own messages in Slack: an app that may read a channel gets events about its own messages too. Channel
 * and `ts` together name a message (docs.slack.dev/messaging); only Slack writes them, so no one else can
 * have an event ignored. An event may arrive before the response to the post. A stop of the daemon forgets
 * the posts without a response.
 */
export class OwnMessages {
  readonly #names = new BoundedMap<string, true>(maxMessages)
  readonly #pending = new Set<Promise<unknown>>()
  readonly #waitMs: number

  constructor(waitMs = maxWaitMs) {
    this.#waitMs = waitMs
  }

  /** Posts a message, whose name is not known until the response. */
  async post<Value>(send: () => Promise<Value>): Promise<Value> {
    const response = send()
    this.#pending.add(response)
    try {
      return await response
    } finally {
      this.#pending.delete(response)
    }
  }

  /** Takes the response of chat.postMessage. */
  remember(response: unknown): void {
    const name = toMessageName(textAt(response, 'channel'), textAt(response, 'ts'))
    if (name !== undefined) this.#put(name)
  }

  /** Takes a comment of Linear by its id, or one of Jira by its address in the API. */
  rememberComment(id: string): void {
    this.#put(toCommentName(id))
  }

  /** True for an event of Slack, Jira or Linear about one of our messages. */
  isOwnMessage(payload: unknown): boolean {
    if (this.#names.size === 0) return false
    const isComment = textAt(payload, 'type') === 'Comment'
    const id = textAt(payload, 'comment', 'self') ?? (isComment && textAt(payload, 'data', 'id'))
    if (id && this.#names.has(toCommentName(id))) return true
    const channel = textAt(payload, 'event', 'channel')
    // A change or removal (`message_changed`, `message_deleted`) names the message inside.
    return [['ts'], ['message', 'ts'], ['previous_message', 'ts']].some((path) => {
      const name = toMessageName(channel, textAt(payload, 'event', ...path))
      return name !== undefined && this.#names.has(name)
    })
  }

  /**
   * Resolves when all pending posts have a response, or after 2 s, as Slack gives us 3 s; undefined when none
   * is pending.
   */
  posted(): Promise<void> | undefined {
    if (this.#pending.size === 0) return undefined
    const settled = Promise.allSettled(this.#pending).then(() => undefined)
    return withDeadline(this.#waitMs, settled, () => undefined)
  }

  /** Takes a commit status before it is set: GitHub gives it no place for a mark. */
  rememberStatus(status: CommitStatus): void {
    this.#put(toStatusName(status))
  }

  /** True for an event of GitHub about one of our commit statuses. */
  isOwnStatus(payload: unknown): boolean {
    if (this.#names.size === 0) return false
    const [sha, context, description, state] = ['sha', 'context', 'description', 'state'].map(
      (name) => textAt(payload, name),
    )
    if (!sha || !context || !description || !state) return false
    return this.#names.has(toStatusName({ sha, context, description, state }))
  }

  /** Takes a commit before it is pushed. */
  rememberCommit(sha: string): void {
    this.#put(toCommitName(sha))
  }

  /**
   * True for an event of GitHub about one of our commits: its push, its pull request when that gets it, and
   * what checks it. A rule that fixes what fails would fix its own fix forever.
   */
  isOwnCommit(payload: unknown): boolean {
    if (this.#names.size === 0) return false
    const action = textAt(payload, 'action') ?? ''
    const isPushed = ['opened', 'synchronize'].includes(action)
    return [
      ['after'],
      ['sha'],
      ['workflow_run', 'head_sha'],
      ['check_run', 'head_sha'],
      ['check_suite', 'head_sha'],
      ...(isPushed ? [['pull_request', 'head', 'sha']] : []),
    ].some((path) => {
      const sha = textAt(payload, ...path)
      return sha !== undefined && this.#names.has(toCommitName(sha))
    })
  }

  /** Takes what an answer requested, before it happens: GitHub and GitLab tell of it with no mark. */
  rememberActs(act: Act, place: string, number: string, names: readonly string[]): void {
    const minute = Math.floor(Date.now() / minuteMs)
    for (const name of names) this.#put(toActName(act, place, number, name, minute))
  }

  /** True for an event of GitHub or GitLab about what an answer requested, by the time at which it happened. */
  isOwnAct(payload: unknown): boolean {
    if (this.#names.size === 0) return false
    const done = findAct(payload)
    if (!done || done.names.length === 0) return false
    const { act, place, number, names, at } = done
    const minutes = Array.from({ length: 2 * nearMinutes + 1 }, (_, one) => one - nearMinutes)
    const middle = Math.floor(at / minuteMs)
    return names.every((name) =>
      minutes.some((one) => this.#names.has(toActName(act, place, number, name, middle + one))),
    )
  }

  /** The names of messages, oldest first. */
  snapshot(): readonly string[] {
    return [...this.#names.keys()]
  }

  restore(names: readonly string[]): void {
    for (const name of names) this.#put(name)
  }

  #put(name: string): void {
    this.#names.set(name, true)
  }
}

type CommitStatus = {
  readonly sha: string
  readonly context: string
  readonly description: string
  readonly state: string
}

/** Jira's address of a comment ends the same in all its versions, and on all its hosts. */
const toCommentName = (id: string): string =>
  `comment ${/\/issue\/\d+\/comment\/\d+$/.exec(id)?.[0] ?? id}`

const toCommitName = (sha: string): string => `commit ${sha}`

const toStatusName = ({ sha, context, description, state }: CommitStatus): string =>
  JSON.stringify([sha, context, description, state])

const toMessageName = (channel: string | undefined, ts: string | undefined): string | undefined =>
  channel === undefined || ts === undefined ? undefined : `${channel} ${ts}`

const minuteMs = 60_000
/** How far the clocks of the server and of this machine may differ: the same by a person's hand later is no echo. */
const nearMinutes = 3

const toActName = (act: Act, place: string, number: string, name: string, minute: number): string =>
  JSON.stringify(['act', act, place.toLowerCase(), number, name.toLowerCase(), minute])

export type CommentMarks = {
  /** A hidden line that identifies our comment: it names event and part. */
  readonly markFor: (eventId: string, part: number, text: string) => string
  /** The body of our comment. */
  readonly toBody: (mark: string, text: string) => string
  /** A hidden line after the mark, the same for each comment with this key. */
  readonly keyLine: (key: string) => string
  /** A hidden line after the mark: the same first half for all texts of a rule, the second for one of them. */
  readonly halvesLine: (rule: string, one: string) => string
  /** True for a body that this home wrote and no one has changed. */
  readonly isOwn: (body: string) => boolean
  /** The event and the text of such a body. */
  readonly read: (body: string) => { readonly eventId: string; readonly text: string } | undefined
  /** The event of a check run of this home. */
  readonly readCheck: (payload: unknown) => { readonly eventId: string } | undefined
  /** True for an event about an issue of this home that no one has changed: that it was opened, labels included. */
  readonly isOwnIssue: (payload: unknown) => boolean
  /** True for an event about a comment, a review or a check run of this home that no one has changed. */
  readonly isOwnComment: (payload: unknown) => boolean
}

const markStart = '<!-- doorward:'
const markPattern = /^<!-- doorward:(evt_[0-9a-f]{18}):(\d{1,3}) ([\w-]{43}) -->\s*/

const toKeyLine = (name: string): string => `<!-- doorward-key:${name} -->`

/**
 * Our own comments on GitHub and GitLab. The mark is signed together with the text, with a key that only this
 * home has: others can neither make a mark nor copy one to their own words, and so cannot have an event ignored.
 */
export const createCommentMarks = (apiToken: string): CommentMarks => {
  const key = createHmac('sha256', apiToken).update('doorward mark of a comment').digest()
  const sign = (eventId: string, part: string, text: string): string =>
    createHmac('sha256', key)
      // The server may change white space.
      .update(`${eventId}\n${part}\n${text.replaceAll(/\s+/g, ' ').trim()}`)
      .digest('base64url')

  const read: CommentMarks['read'] = (body) => {
    if (!body.startsWith(markStart)) return undefined
    const [mark, eventId, part, signature] = markPattern.exec(body) ?? []
    if (mark === undefined || !eventId || !part || !signature) return undefined
    const text = body.slice(mark.length)
    return constantTimeEqual(signature, sign(eventId, part, text)) ? { eventId, text } : undefined
  }
  const isOwn = (body: string): boolean => read(body) !== undefined
  const readCheck: CommentMarks['readCheck'] = (payload) => {
    const mark = textAt(payload, 'check_run', 'external_id')
    if (mark === undefined) return undefined
    return read(`${mark}\n${textAt(payload, 'check_run', 'output', 'summary') ?? ''}`)
  }
  const nameOf = (text: string): string =>
    createHmac('sha256', key).update(`key\n${text}`).digest('base64url')

  return {
    isOwn,
    read,
    readCheck,
    keyLine: (text) => toKeyLine(nameOf(text).slice(0, 16)),
    halvesLine: (rule, one) => toKeyLine(nameOf(rule).slice(0, 8) + nameOf(one).slice(0, 8)),
    markFor: (eventId, part, text) =>
      `${markStart}${eventId}:${part} ${sign(eventId, String(part), text)} -->`,
    toBody: (mark, text) => `${mark}\n${text}`,
    isOwnIssue: (payload) => isNewIssue(payload) && isOwn(findIssueText(payload)),
    isOwnComment: (payload) => {
      // GitLab calls a comment a note.
      const body =
        textAt(payload, 'comment', 'body') ??
        textAt(payload, 'review', 'body') ??
        textAt(payload, 'object_attributes', 'note')
      if (body !== undefined) return isOwn(body)
      return readCheck(payload) !== undefined
    },
  }
}

/** Those of `signs/check.ts`: to run again, to send and to decline. */
const isButton = (identifier: string | undefined): boolean =>
  identifier === 'run-again' || /^(?:send|decline) [0-9a-f]{12}$/.test(identifier ?? '')
