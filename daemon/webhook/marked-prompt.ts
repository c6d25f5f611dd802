import type { Explanation } from '../../shared/api.ts'
import { promptParts } from './expand.ts'
import { fenceIdFor } from './fence-id.ts'
import type { Payload } from './parse.ts'
import type { ReadyWebhook } from './ready-webhook.ts'

/** The prompt as an event gets it, and where in it the values of the payload stand. */
export const markedPrompt = (
  { prompt: template, values }: ReadyWebhook,
  payload: Payload,
): Pick<Explanation, 'prompt' | 'substituted'> => {
  const parts = promptParts(template, payload, values, fenceIdFor(values))
  let end = 0
  const substituted = parts.flatMap(({ text, from }) => {
    const start = end
    end += text.length
    return from === undefined ? [] : [{ path: from, start, end }]
  })
  return { prompt: parts.map(({ text }) => text).join(''), substituted }
}
