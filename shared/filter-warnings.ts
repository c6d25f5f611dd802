import { beginsAsInPrompt } from './dot-path.ts'
import type { Warning } from './warning.ts'
import type { Webhook } from './webhook-definition.ts'

/** For a path that begins as in a prompt. */
export const prefixHint = (path: string): string =>
  `write ${path.slice('event.'.length)}: paths of a filter have no event. in front`

/**
 * Paths of a filter that are written as in a prompt. Slack's payloads do have a field `event`, and so have
 * those of which the prompt takes something out of it.
 */
export const filterWarnings = ({
  path,
  scheme,
  filter,
  prompt,
}: Pick<Webhook, 'path' | 'scheme' | 'filter' | 'prompt'>): Warning[] => {
  const hasField = scheme.name === 'slack' || prompt.parts.some(([first]) => first === 'event')
  return hasField
    ? []
    : filter
        .filter((condition) => beginsAsInPrompt(condition.path))
        .map(({ text }) => ({
          code: 'filter-path-prefix',
          detail: `webhook ${path}: ${text} in filter never matches, unless the payload has a field event`,
          hint: prefixHint(text),
        }))
}
