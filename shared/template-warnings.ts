import type { Warning } from './warning.ts'
import type { Webhook } from './webhook-definition.ts'

/** `{{event.number` without its end, and `{event.number}`: both stay in the prompt as they are. */
const meantAsPlaceholder = /\{\{\s*event\b[^{}\n]{0,40}\}?|\{event\.[\w.]{1,60}\}+/

/** What looks like a placeholder in a prompt and is none. */
export const templateWarnings = ({ path, prompt }: Pick<Webhook, 'path' | 'prompt'>): Warning[] =>
  prompt.parts.flatMap((part): Warning[] => {
    const [found] = (typeof part === 'string' && meantAsPlaceholder.exec(part)) || []
    return found === undefined
      ? []
      : [
          {
            code: 'placeholder-unfinished',
            detail: `webhook ${path}: ${found.trim()} in prompt_template is no placeholder, so it stays as it is`,
            hint: 'write {{event}} or {{event.<path>}}, with two braces on either side',
          },
        ]
  })
