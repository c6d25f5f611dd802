import { each, type Path } from '../../shared/paths.ts'
import type { SignatureForm } from '../../shared/signatures/form.ts'
import type { Payload } from './parse.ts'

/*
 * A token that proves the sender and is a field of the body: it is a secret, and goes into no prompt, answer,
 * file or program.
 */

type Form = Pick<SignatureForm, 'check' | 'in' | 'field'>
type Forms = { readonly forms?: readonly Form[] }

const placeOf = ({ check, in: place, field }: Form): Path | undefined => {
  if (check === 'client-state') return ['value', each, 'clientState']
  return place === 'field' ? field : undefined
}

export const hasBodyToken = ({ forms = [] }: Forms): boolean =>
  forms.some((form) => placeOf(form) !== undefined)

/** Replaces it in a payload that was just parsed. */
export const hideBodyToken = (payload: Payload, { forms = [] }: Forms): Payload => {
  for (const form of forms) {
    const path = placeOf(form)
    if (path) hideAt(payload, path)
  }
  return payload
}

const hideAt = (value: unknown, [name, ...rest]: Path): void => {
  if (typeof value !== 'object' || value === null || name === undefined) return
  if (name === each) {
    if (Array.isArray(value)) for (const item of value) hideAt(item, rest)
  } else if (Object.hasOwn(value, name)) {
    const fields = value as Record<string, unknown>
    if (rest.length > 0) hideAt(fields[name], rest)
    else fields[name] = '[the token]'
  }
}
