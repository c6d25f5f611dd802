import { DoorwardError } from '../shared/errors.ts'
import { providerNameForm } from '../shared/config/values.ts'
import { plainLine } from '../shared/text.ts'

/**
 * Checks what was typed as the name of a provider before it becomes a part of a path or of a variable's
 * name. Throws `provider-unknown`.
 */
export const providerNameOf = (typed: string): string => {
  if (providerNameForm.test(typed)) return typed
  const lower = typed.toLowerCase()
  throw new DoorwardError(
    'provider-unknown',
    `"${plainLine(typed).slice(0, 80)}" is not the name of a provider`,
    {
      hint: providerNameForm.test(lower)
        ? `did you mean "${lower}"?`
        : 'names are google, github, slack, and those under providers: in gateway.yaml',
    },
  )
}
