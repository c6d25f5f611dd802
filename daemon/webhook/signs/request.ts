import { textAt, textOfValue, valueAt } from '../../util/payload-path.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import { getEventNames } from '../rules/choose.ts'

/*
 * What shows people at the sender that an event runs, as its payload says where.
 */

/** A message that gets eyes while its event waits and runs. */
export type SeenRequest = { readonly isAsked: boolean } & (
  | {
      readonly kind: 'github'
      readonly repository: string
      /** Below the repository: `issues/comments/1`, `pulls/comments/1`, `issues/7`. */
      readonly of: string
      readonly login: string | undefined
    }
  | { readonly kind: 'slack'; readonly channel: string; readonly ts: string }
  | { readonly kind: 'telegram'; readonly chat: string; readonly message: number }
)

type Asked = Pick<ReadDelivery, 'headers' | 'payload'> & {
  readonly webhook: Pick<ReadDelivery['webhook'], 'scheme' | 'source'>
}

/** `acknowledge`, by default where a comment at GitHub or a mention started it; undefined where there is nothing to mark. */
export const toSeenRequest = (
  { acknowledge, workspace, mention }: Pick<CompiledRule, 'acknowledge' | 'workspace' | 'mention'>,
  { webhook: { scheme, source }, headers, payload }: Asked,
): SeenRequest | undefined => {
  const isComment =
    mention !== undefined ||
    (scheme.name === 'github' &&
      getEventNames(scheme, headers, payload).some((name) =>
        /^(?:issue_comment|pull_request_review_comment)\.created$/.test(name),
      ))
  if (!(acknowledge ?? isComment)) return undefined
  const isAsked = acknowledge === true
  if (scheme.name === 'github') {
    const repository = textAt(payload, 'repository', 'full_name')
    const of = findMarked(payload)
    if (repository === undefined || of === undefined) return undefined
    const login = source?.app === undefined ? workspace?.login : `github@${source.app}`
    return { kind: 'github', isAsked, repository, of, login }
  }
  if (scheme.name === 'slack') {
    const channel = textAt(payload, 'event', 'channel')
    // Of a message that was edited the event has a time of its own.
    const ts = textAt(payload, 'event', 'message', 'ts') ?? textAt(payload, 'event', 'ts')
    const isMessage = /^\w+$/.test(channel ?? '') && /^\d+\.\d+$/.test(ts ?? '')
    return isMessage ? { kind: 'slack', isAsked, channel: channel ?? '', ts: ts ?? '' } : undefined
  }
  if (scheme.name !== 'telegram') return undefined
  const chat = textOfValue(valueAt(payload, ['message', 'chat', 'id']))
  const message = toNumber(valueAt(payload, ['message', 'message_id']))
  return message !== undefined && /^-?\d+$/.test(chat)
    ? { kind: 'telegram', isAsked, chat, message }
    : undefined
}

/** The comment; GitHub takes reactions to no review, so its pull request, or that or the issue itself. */
const findMarked = (payload: unknown): string | undefined => {
  const comment = toNumber(valueAt(payload, ['comment', 'id']))
  const issue = toNumber(valueAt(payload, ['issue', 'number']))
  const pull = toNumber(valueAt(payload, ['pull_request', 'number']))
  if (comment !== undefined && issue !== undefined) return `issues/comments/${comment}`
  if (comment !== undefined && pull !== undefined) return `pulls/comments/${comment}`
  const number = pull ?? issue
  return number === undefined ? undefined : `issues/${number}`
}

const toNumber = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
