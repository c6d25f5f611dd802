import { DoorwardError } from '../shared/errors.ts'
import { plainLine } from '../shared/plain-text.ts'

const providerName = /^[a-z0-9][a-z0-9_-]{0,63}$/

/**
 * Checks what was typed as the name of a provider before it becomes a part of a path or of a variable's
 * name. Throws `provider-unknown`.
 */
export const providerNameOf = (typed: string): string => {
  if (providerName.test(typed)) return typed
  const lower = typed.toLowerCase()
  throw new DoorwardError(
    'provider-unknown',
    `"${plainLine(typed).slice(0, 80)}" is not the name of a provider`,
    {
      hint: providerName.test(lower)
        ? `did you mean "${lower}"?`
        : 'names are google, github, slack, and those under providers: in gateway.yaml',
    },
  )
}
