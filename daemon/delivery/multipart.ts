import { createHash } from 'node:crypto'
import type { SentKind } from '../../shared/config/targets.ts'
import { DeliveryError } from './delivery-error.ts'
import { partsFor } from './format/parts.ts'
import { retry, type RetryRules, retryRules, type Tried } from './retry.ts'
import type { AgentReply, Sender } from './sender.ts'

/** A target that leaves the machine, with its name. */
type SentTarget = {
  readonly text: string
  readonly kind: SentKind
  readonly address: string
}

/**
 * Sends an answer as the messages that it becomes there, one after the other, each tried again as the rules
 * have it. Begins at the one at which an earlier delivery of this answer broke off. Throws `DeliveryFailed`.
 */
export const createSendParts =
  (
    senders: Readonly<Record<SentKind, Sender>>,
    progress: Progress,
    rules: RetryRules = retryRules,
  ) =>
  async (
    target: SentTarget,
    answered: AgentReply,
    tried: Pick<Tried, 'signal' | 'again'>,
  ): Promise<string | undefined> => {
    const { kind, address } = target
    const { knowsRepeats, send } = senders[kind]
    const { signal } = tried
    const { tryMs: timeoutMs, takeMailMs } = rules
    const texts = partsFor(target, answered.text)
    const before = progress.of(answered, target.text)
    const remarks = new Set<string>()
    for (const [index, text] of texts.entries()) {
      if (index < before.parts) continue
      const seen = index === before.parts && before.mayHaveArrived
      try {
        const remark = await retry(
          (mayHaveArrived) =>
            send(
              { address, text, part: index + 1, answered },
              { signal, timeoutMs, takeMailMs, mayHaveArrived: mayHaveArrived || seen },
            ),
          { ...tried, knowsRepeats },
          rules,
        )
        if (remark !== undefined) remarks.add(remark)
      } catch (error) {
        const mayHaveArrived = error instanceof DeliveryError && error.mayHaveArrived
        progress.note(answered, target.text, {
          parts: index,
          mayHaveArrived: seen || mayHaveArrived,
        })
        throw texts.length > 1 ? withPart(error, index, texts.length) : error
      }
    }
    progress.forget(answered, target.text)
    return remarks.size === 0 ? undefined : [...remarks].join('; ')
  }
const withPart = (error: unknown, index: number, of: number): unknown => {
  if (!(error instanceof DeliveryError)) return error
  const { code, hint, fate, message } = error
  return new DeliveryError(fate, `${message} (part ${index + 1} of ${of})`, { code, hint })
}

/** How far an answer of several messages has come at one target. */
export type Reached = {
  /** Parts that have arrived. */
  readonly parts: number
  /** The next one may have arrived too. */
  readonly mayHaveArrived: boolean
}

export type Progress = {
  readonly of: (answered: AgentReply, target: string) => Reached
  readonly note: (answered: AgentReply, target: string, now: Reached) => void
  readonly forget: (answered: AgentReply, target: string) => void
  readonly entries: () => readonly (readonly [key: string, reached: Reached])[]
  /** Notes it under the key that another one has it under; undefined forgets it. */
  readonly put: (key: string, reached: Reached | undefined) => void
  /** Calls back at each change from now on, until the returned function is called. */
  readonly follow: (listener: (key: string, reached: Reached | undefined) => void) => () => void
}

const most = 1000
const none: Reached = { parts: 0, mayHaveArrived: false }

/**
 * Remembers where deliveries broke off, so that a retry by hand goes on there and repeats nothing. By a
 * hash of the answer: another answer to the same event begins anew.
 */
export const createProgress = (): Progress => {
  const reached = new Map<string, Reached>()
  const listeners = new Set<Parameters<Progress['follow']>[0]>()
  const keyOf = ({ eventId, text }: AgentReply, target: string): string =>
    createHash('sha256').update(`${eventId}\n${target}\n${text}`).digest('base64')
  const put = (key: string, now: Reached | undefined): void => {
    reached.delete(key)
    if (now && (now.parts > 0 || now.mayHaveArrived)) reached.set(key, now)
    const [oldest] = reached.keys()
    if (reached.size > most && oldest !== undefined) reached.delete(oldest)
    for (const listener of listeners) listener(key, now)
  }

  return {
    of: (answered, target) => reached.get(keyOf(answered, target)) ?? none,
    note: (answered, target, now) => put(keyOf(answered, target), now),
    forget: (answered, target) => put(keyOf(answered, target), undefined),
    entries: () => [...reached],
    put,
    follow: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
