import { type CommentMarks, ownCommentDetail } from './own-comment.ts'
import { type OwnMessages, ownMessageDetail } from './own-message.ts'

/** What keeps an answer from waking the webhook that it answers. */
export type LoopGuard = {
  /** Why an event is passed over: it is about what this home wrote. Undefined for all others. */
  readonly ownDetail: (payload: unknown) => string | undefined
  /** Until when an event of Slack may be one about a message whose name is not known yet. */
  readonly posted: OwnMessages['posted']
}

export const createLoopGuard = (
  { isOwnComment }: Pick<CommentMarks, 'isOwnComment'>,
  { isOwnMessage, posted }: Pick<OwnMessages, 'isOwnMessage' | 'posted'>,
): LoopGuard => ({
  ownDetail: (payload) => {
    if (isOwnComment(payload)) return ownCommentDetail
    return isOwnMessage(payload) ? ownMessageDetail : undefined
  },
  posted,
})
