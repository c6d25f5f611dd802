import type { Explanation } from '../../shared/api.ts'
import { expand, plainText } from './expand.ts'
import type { Payload } from './parse.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { valueAt } from './value-at.ts'

/** The prompt as an event gets it, and where in it the values of the payload stand. */
export const markedPrompt = (
  { prompt: template }: ReadyWebhook,
  payload: Payload,
): Pick<Explanation, 'prompt' | 'substituted'> => {
  let end = 0
  const substituted = template.parts.flatMap((part) => {
    const start = end
    end += typeof part === 'string' ? part.length : plainText(valueAt(payload, part)).length
    return typeof part === 'string' ? [] : [{ path: ['event', ...part].join('.'), start, end }]
  })
  return { prompt: expand(template, payload), substituted }
}
