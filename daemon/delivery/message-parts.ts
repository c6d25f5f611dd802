import { createHash } from 'node:crypto'
import type { HttpValues } from '../../shared/targets/http-templates.ts'
import type { SentKind } from '../../shared/targets/schema.ts'
import { DeliveryError } from './delivery-error.ts'
import { isOutputsKind } from '../../shared/targets/schema.ts'
import { toLinkHosts } from './format/links.ts'
import { describeLeftOut, toBoldLine, toParts } from './format/parts.ts'
import { toActionText, writeAction } from './outputs/action.ts'
import { retry, type RetryOptions, type RetryRules, retryRules } from './retry.ts'
import type { AgentReply, Sender, Sent } from './sender.ts'
import { BoundedMap } from '../util/collections.ts'

export type RemoteTarget = {
  readonly text: string
  readonly kind: SentKind
  readonly address: string
  readonly values?: HttpValues | undefined
}

/**
 * Sends a reply as one or more messages in order, with retries. Resumes at the part at which an earlier
 * delivery of this reply failed. Throws `DeliveryError`.
 */
export const createPartsSender =
  (
    senders: Readonly<Record<SentKind, Sender>>,
    progress: Progress,
    rules: RetryRules = retryRules,
  ) =>
  async (target: RemoteTarget, reply: AgentReply, options: PartsOptions): Promise<Sent> => {
    const { kind, address, values } = target
    const { isIdempotent: given, send, server } = senders[kind]
    const isIdempotent = typeof given === 'boolean' ? given : given(address)
    const { signal } = options
    const { attemptMs: timeoutMs, mailTimeoutMs } = rules
    const texts = toMessages(target, reply, server)
    const before = progress.get(reply, target.text)
    const notes = new Set<string>()
    if (texts.length === 0) notes.add('the answer requests nothing that the rule allows')
    let made: Sent['made']
    for (const [index, text] of texts.entries()) {
      if (index < before.parts) continue
      const mayBeThere = index === before.parts && before.mayHaveArrived
      try {
        const sent = await retry(
          (mayHaveArrived) =>
            send(
              { address, values, text, part: index + 1, isLast: index + 1 === texts.length, reply },
              { signal, timeoutMs, mailTimeoutMs, mayHaveArrived: mayHaveArrived || mayBeThere },
            ),
          { ...options, isIdempotent },
          rules,
        )
        const {
          note,
          made: thing,
          outputs,
        }: Sent = typeof sent === 'object' ? sent : { note: sent }
        if (note !== undefined) notes.add(note)
        if (outputs) options.requested?.({ outputs, made: thing })
        else made ??= thing
      } catch (error) {
        const mayHaveArrived =
          mayBeThere || (error instanceof DeliveryError && error.mayHaveArrived)
        progress.set(reply, target.text, { parts: index, mayHaveArrived })
        throw texts.length > 1 ? withPart(error, index, texts.length) : error
      }
    }
    progress.forget(reply, target.text)
    return { note: notes.size === 0 ? undefined : [...notes].join('; '), made }
  }

export type PartsOptions = Pick<RetryOptions, 'signal' | 'onRetry'> & {
  /** Called for each request of the answer. */
  readonly requested?: (sent: Pick<Sent, 'outputs' | 'made'>) => void
}

/** The texts that a target is sent, in order. A request of the answer is one of its own. */
export const toMessages = (
  target: RemoteTarget,
  reply: AgentReply,
  server?: string,
): readonly string[] => {
  const { kind } = target
  const hosts = toLinkHosts(server, reply)
  return isOutputsKind(kind)
    ? (reply.actions ?? []).map((action) => toActionText(action, kind, hosts))
    : toParts(target, toText(target, reply), hosts)
}

/** The words of a reply for a target, before they are cut into messages. */
const toText = (
  { kind, address }: RemoteTarget,
  { text, reviewText = text, code, title }: AgentReply,
): string => {
  if (kind.endsWith('-review') || kind === 'github-check') return reviewText
  // In a thread its first message says what it is about.
  if (kind === 'slack' && title !== undefined && !address.includes('/'))
    return `${toBoldLine(title)}\n\n${text}`
  const leftOut = kind === 'github' || kind === 'gitlab' ? describeLeftOut(code) : ''
  return leftOut === '' ? text : `${leftOut}\n\n${text}`
}

const withPart = (error: unknown, index: number, total: number): unknown => {
  if (!(error instanceof DeliveryError)) return error
  const { code, hint, retryability, message } = error
  return new DeliveryError(retryability, `${message} (part ${index + 1} of ${total})`, {
    code,
    hint,
  })
}

/** How much of a reply has arrived at one target. */
export type PartsSent = {
  readonly parts: number
  /** The next part may have arrived too. */
  readonly mayHaveArrived: boolean
}

/** The parts at which deliveries failed: a retry by hand resumes there and repeats nothing. */
export type Progress = {
  readonly get: (reply: AgentReply, target: string) => PartsSent
  readonly set: (reply: AgentReply, target: string, sent: PartsSent) => void
  readonly forget: (reply: AgentReply, target: string) => void
  readonly snapshot: () => readonly (readonly [key: string, sent: PartsSent])[]
  readonly restore: (entries: readonly (readonly [key: string, sent: PartsSent])[]) => void
}

const maxEntries = 1000
const nothingSent: PartsSent = { parts: 0, mayHaveArrived: false }

/** Keyed by a hash of the reply: another reply to the same event starts at its first part. */
export const createProgress = (): Progress => {
  const entries = new BoundedMap<string, PartsSent>(maxEntries)
  const toKey = ({ eventId, text, actions = [] }: AgentReply, target: string): string =>
    createHash('sha256')
      .update([eventId, target, ...actions.map(writeAction), text].join('\n'))
      .digest('base64')
  const put = (key: string, sent: PartsSent | undefined): void => {
    if (sent && (sent.parts > 0 || sent.mayHaveArrived)) entries.set(key, sent)
    else entries.delete(key)
  }

  return {
    get: (reply, target) => entries.get(toKey(reply, target)) ?? nothingSent,
    set: (reply, target, sent) => put(toKey(reply, target), sent),
    forget: (reply, target) => put(toKey(reply, target), undefined),
    snapshot: () => [...entries],
    restore: (copied) => {
      for (const [key, sent] of copied) put(key, sent)
    },
  }
}
