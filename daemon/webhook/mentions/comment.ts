import { textAt, textOfValue, valueAt } from '../../util/payload-path.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import { type DeliveryKey, ofComment, ofRule } from '../dedupe.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import { findSlackUsers, namesInSlack, namesInTelegram } from './chat.ts'
import { namesInMarkdown } from './markdown.ts'

/*
 * The comment or message of an event, for `mention` of a rule. What is written when an issue or a pull request is
 * opened is none.
 */

export type Comment = {
  /** The same for all events about one comment at its sender. */
  readonly id: string
  /** `name` is in lower case, without the at sign. */
  readonly names: (name: string) => boolean
  /** The same of its text before it was edited; undefined for a new one, and where the sender does not say. */
  readonly named?: (name: string) => boolean
}

type ReadComment = (payload: unknown) => Comment | undefined

/** GitHub's issue_comment, pull_request_review_comment and pull_request_review. */
const ofGithub: ReadComment = (payload) => {
  const action = textAt(payload, 'action') ?? ''
  if (!['created', 'edited', 'submitted'].includes(action)) return undefined
  const isOf = (key: string) => valueAt(payload, [key, 'number']) !== undefined
  if (!isOf('issue') && !isOf('pull_request')) return undefined
  const kind = valueAt(payload, ['comment']) === undefined ? 'review' : 'comment'
  const body = textAt(payload, kind, 'body')
  const id = textOfValue(valueAt(payload, [kind, 'id']))
  if (body === undefined || id === '') return undefined
  const before = textAt(payload, 'changes', 'body', 'from') ?? body
  return {
    id: `${kind === 'comment' && isOf('issue') ? 'issue comment' : kind} ${id}`,
    names: (name) => namesInMarkdown(body, name, 'github'),
    ...(action === 'edited' && { named: (name) => namesInMarkdown(before, name, 'github') }),
  }
}

/** docs.gitlab.com/user/project/integrations/webhook_events/#comment-events */
const ofGitlab: ReadComment = (payload) => {
  const at = (name: string) => textOfValue(valueAt(payload, ['object_attributes', name]))
  if (textAt(payload, 'object_kind') !== 'note') return undefined
  if (!['MergeRequest', 'Issue'].includes(at('noteable_type')) || at('system') === 'true')
    return undefined
  return { id: `note ${at('id')}`, names: (name) => namesInMarkdown(at('note'), name, 'gitlab') }
}

/** docs.slack.dev/reference/events/app_mention, message and message.message_changed */
const ofSlack: ReadComment = (payload) => {
  const type = textAt(payload, 'event', 'type')
  const subtype = textAt(payload, 'event', 'subtype')
  if (type !== 'app_mention' && type !== 'message') return undefined
  const isEdited = subtype === 'message_changed'
  const written = [undefined, 'file_share', 'thread_broadcast', 'me_message']
  if (!isEdited && !written.includes(subtype)) return undefined
  const at = (...names: string[]) => textAt(payload, 'event', ...names)
  const inside = isEdited ? ['message'] : []
  const [channel, ts, text] = [at('channel'), at(...inside, 'ts'), at(...inside, 'text')]
  if (channel === undefined || ts === undefined || text === undefined) return undefined
  const users = findSlackUsers(payload)
  const before = isEdited ? at('previous_message', 'text') : undefined
  return {
    id: `message ${channel} ${ts}`,
    names: (name) => namesInSlack(text, name, users),
    ...(before !== undefined && { named: (name) => namesInSlack(before, name, users) }),
  }
}

/** core.telegram.org/bots/api#update */
const ofTelegram: ReadComment = (payload) => {
  const message = ['message', 'edited_message', 'channel_post', 'edited_channel_post']
    .map((kind) => valueAt(payload, [kind]))
    .find((one) => one !== undefined)
  const chat = textOfValue(valueAt(message, ['chat', 'id']))
  const id = textOfValue(valueAt(message, ['message_id']))
  if (chat === '' || id === '') return undefined
  return { id: `message ${chat} ${id}`, names: (name) => namesInTelegram(message, name) }
}

const readers: Readonly<Record<string, ReadComment>> = {
  github: ofGithub,
  gitlab: ofGitlab,
  slack: ofSlack,
  telegram: ofTelegram,
}

/** Undefined for an event about no comment or message that somebody wrote or edited. */
export const findComment = (scheme: string, payload: unknown): Comment | undefined =>
  readers[scheme]?.(payload)

/** Why a rule with this `mention` does not run, from the configuration alone. */
export const findMentionMiss = (
  mention: string | undefined,
  scheme: string,
  payload: unknown,
): string | undefined => {
  if (mention === undefined) return undefined
  const comment = findComment(scheme, payload)
  if (!comment) return 'it is no comment or message, and has mention'
  if (!comment.names(mention)) return `it does not name @${mention}`
  return comment.named?.(mention)
    ? `it named @${mention} before it was edited, and was asked once`
    : undefined
}

/** What identifies a delivery for one rule: with `mention` also its comment, of which later events run nothing. */
export const toRuleKey = (
  { name, mention, path }: Pick<CompiledRule, 'name' | 'mention' | 'path'>,
  { key, payload, webhook }: Pick<ReadDelivery, 'key' | 'payload' | 'webhook'>,
): DeliveryKey | undefined => {
  if (mention === undefined) return ofRule(key, name)
  const comment = findComment(webhook.scheme.name, payload)
  return ofRule(ofComment(path, key, comment?.id), name)
}
