import { each, type Path } from '../../shared/paths.ts'
import type { SignatureForm } from '../../shared/signatures/form.ts'
import type { Payload } from './parse.ts'

/*
 * A token that proves the sender and is a field of the body: it is a secret, and goes into no prompt, answer,
 * file or program.
 */

type Forms = { readonly forms?: readonly Pick<SignatureForm, 'check' | 'in' | 'field'>[] }

const listPlaces = ({ forms = [] }: Forms): readonly Path[] =>
  forms.flatMap(({ check, in: place, field }) => {
    if (check === 'client-state') return [['value', each, 'clientState']]
    return place === 'field' && field ? [field] : []
  })

export const hasBodyToken = (scheme: Forms): boolean => listPlaces(scheme).length > 0

/** Replaces it in a payload that was just parsed. */
export const hideBodyToken = (payload: Payload, scheme: Forms): Payload => {
  for (const path of listPlaces(scheme)) hideAt(payload, path)
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
