import type { IncomingHttpHeaders } from 'node:http'
import type { EventRecord, OutputResult } from '../../shared/api/api.ts'
import type { PublishSettings } from '../../shared/config/workspace.ts'
import type { HttpValues } from '../../shared/targets/http-templates.ts'
import type { SentKind } from '../../shared/targets/schema.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import type { OutputAction } from '../../shared/targets/outputs.ts'
import type { NeededToken } from './token.ts'

/** A check run of a bot that follows an event. */
export type LiveCheck = {
  readonly repository: string
  readonly sha: string
  readonly name: string
  readonly number: number
  readonly bot: string
}

/** An agent's answer, and the event that it answers. */
export type AgentReply = {
  readonly eventId: string
  readonly webhook: string
  /** The subject of the event, in one line. */
  readonly title?: string | undefined
  readonly rule?: string | undefined
  readonly subject?: EventRecord['subject'] | undefined
  readonly receivedAt: Date
  readonly text: string
  /** The answer as reviews and checks read it, which have a block of their own. */
  readonly reviewText?: string | undefined
  /** The requests of the answer that `outputs` allows. */
  readonly actions?: readonly OutputAction[] | undefined
  /** A comment or message replaces the earlier one of the same rule with the same key. */
  readonly updateKey?: string | undefined
  /** The name of a check, where it is not that of the rule. */
  readonly checkName?: string | undefined
  /** The check run that follows the event. */
  readonly liveCheck?: LiveCheck | undefined
  readonly code?: SeenCode | undefined
  readonly publish?: PublishSettings | undefined
  /** The login of the bot that answers at GitHub, where the configuration names no other. */
  readonly bot?: string | undefined
}

/** The code that the agent saw, and what it changed there. */
export type SeenCode = {
  /** A full hash. */
  readonly head: string
  /** A commit in the mirror of the repository, or why there is none; undefined where no target wants it. */
  readonly change?:
    { readonly gitDir: string; readonly ref: string } | 'none' | 'left-out' | undefined
  /** What its prompt left out of the change, for the readers of the answer. */
  readonly leftOut?: readonly string[] | undefined
  /** The first files of the change that its prompt leaves out or cuts. */
  readonly notRead?: readonly string[] | undefined
  /** The diff of each file that the answer comments on, without its text: servers give none of large files. */
  readonly hunks?: Readonly<Record<string, string>> | undefined
}

/** A target with the values of the payload filled in, or the reason why it cannot be used. */
export type ResolvedTarget = { readonly text: string } & (
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: string }
  | {
      readonly kind: SentKind
      readonly address: string
      /** Of the event, for an `http` target. */
      readonly values?: HttpValues | undefined
    }
  | { readonly kind: 'invalid'; readonly error: DoorwardError }
)

/** One message to one target: a reply, or a part of one that is too long. */
export type Message = {
  readonly address: string
  readonly values?: HttpValues | undefined
  readonly text: string
  /** Number of the part, from 1. */
  readonly part: number
  /** No other part follows. */
  readonly isLast: boolean
  readonly reply: AgentReply
}

export type Attempt = {
  readonly signal: AbortSignal
  /** For the response of the target. */
  readonly timeoutMs: number
  /** For a mail server to accept a mail, once it has the text. */
  readonly mailTimeoutMs: number
  /** An earlier attempt may have succeeded: look before sending again. */
  readonly mayHaveArrived: boolean
}

/** For a question that sends nothing. */
export type Asking = Pick<Attempt, 'signal' | 'timeoutMs'>

/** What became of a message. */
export type Sent = {
  /** A note for the event. */
  readonly note?: string | undefined
  /** What was made, in a few words, and its page. */
  readonly made?: { readonly what: string; readonly url: string } | undefined
  /** The results of a request of the answer. */
  readonly outputs?: readonly OutputResult[] | undefined
}

const longestUrl = 2048

/**
 * What was made, with its page as the response of the target names it: only one that a browser may open, at the
 * target's own server or, with `isBelow`, a host below it.
 */
export const toMade = (
  what: string,
  page: string | undefined,
  server: string,
  isBelow = false,
): Sent['made'] => {
  if (page === undefined || page.length > longestUrl || !URL.canParse(page)) return undefined
  const { href, username, password, protocol, host } = new URL(page)
  const own = new URL(server)
  const isOwn =
    protocol === own.protocol && (host === own.host || (isBelow && host.endsWith(`.${own.host}`)))
  return isOwn && username + password === '' && isSafeToOpen(href) ? { what, url: href } : undefined
}

/** A target outside this machine. */
export type Sender = {
  /** True where a repeat is recognised, so that an indeterminate attempt can be repeated. */
  readonly isIdempotent: boolean | ((address: string) => boolean)
  /** Sends once. Returns a note for the event, or more, if there is any. Throws `DeliveryError`. */
  readonly send: (message: Message, attempt: Attempt) => Promise<string | Sent | undefined>
  /**
   * Asks whether it can be reached and takes our token, by a request that leaves nothing behind. Returns its
   * response, if one was needed. Throws `DeliveryError`.
   */
  readonly check?: (
    address: string,
    asking: Asking,
  ) => Promise<{ readonly headers: IncomingHttpHeaders } | undefined>
  /**
   * The exact text that `send` would send, made by the same code and without asking anyone. By default the parts of
   * the message.
   */
  readonly preview?: (message: Omit<Message, 'part' | 'isLast'>) => string | Promise<string>
  /** The origin of its server, whose links stay links in an answer. */
  readonly server?: string | undefined
  /** Undefined where a variable has its token. */
  readonly needs?: NeededToken | undefined
}
