import type { SentKind } from '../../shared/config/targets.ts'
import type { DoorwardError } from '../../shared/errors.ts'

/** One message for one target: an answer, or a part of one that is too long for it. */
export type Message = {
  readonly address: string
  readonly text: string
  /** Which part it is, from 1. */
  readonly part: number
  readonly answered: AgentReply
}

export type Attempt = {
  readonly signal: AbortSignal
  /** How long the target has for its answer. */
  readonly timeoutMs: number
  /** How long a mail server has to say that it took a mail, once its text is on its way. */
  readonly takeMailMs: number
  /** An earlier try may have brought it there: look before sending again. */
  readonly mayHaveArrived: boolean
}

/** A target that leaves the machine. */
export type Sender = {
  /** True where a repeat is recognised, so that what may have arrived can be sent again. */
  readonly knowsRepeats: boolean
  /**
   * Sends once. What it returns is a remark for the person who looks at the event. Throws
   * `DeliveryFailed`, which says whether another try makes sense.
   */
  readonly send: (message: Message, attempt: Attempt) => Promise<string | undefined>
}

/** What a target is given: an agent's answer, and the event it answers. */
export type AgentReply = {
  readonly eventId: string
  readonly webhook: string
  readonly receivedAt: Date
  readonly text: string
}

/** A target with the payload's values in place, or the reason why it cannot be used. */
export type ResolvedTarget = { readonly text: string } & (
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: SentKind; readonly address: string }
  | { readonly kind: 'invalid'; readonly error: DoorwardError }
)
