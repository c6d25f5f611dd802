import type { SentKind } from '../../shared/config/targets.ts'
import type { Answered } from './answered.ts'
import { DeliveryFailed } from './delivery-failed.ts'
import type { Progress } from './progress.ts'
import { type RetryRules, type Tried, retry, retryRules } from './retry.ts'
import type { Sender } from './sender.ts'
import { partsFor } from './text/parts.ts'

/** A target that leaves the machine, with its name. */
export type SentTarget = {
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
    answered: Answered,
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
        const mayHaveArrived = error instanceof DeliveryFailed && error.mayHaveArrived
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
  if (!(error instanceof DeliveryFailed)) return error
  const { code, hint, fate, message } = error
  return new DeliveryFailed(fate, `${message} (part ${index + 1} of ${of})`, { code, hint })
}
