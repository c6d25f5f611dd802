import { each, type Path } from '../../shared/paths.ts'
import type { SignatureForm } from '../../shared/signatures/form.ts'
import type { SignatureScheme } from '../../shared/signatures/scheme.ts'
// oxlint-disable-next-line no-restricted-imports -- the argument of `parse` is verified
import { type BodyHeaders, parseUnverified, type Payload, toBodyHeaders } from './body.ts'
import type { SignatureHeaders } from './signatures/header.ts'
import type { VerifiedBody } from './signatures/verify.ts'

/** Third stage. Throws what `parseUnverified` throws. */
export const parse = (
  body: VerifiedBody,
  headers: BodyHeaders,
  format: Partial<SignatureScheme> = {},
): Payload => parseUnverified(body.bytes, headers, format)

/**
 * The payload of a verified delivery: what `parse` returns, without the token of its sender, or the headers
 * that the scheme names where its sender sends no body.
 */
export const readPayload = (
  body: VerifiedBody,
  headers: SignatureHeaders,
  scheme: Partial<SignatureScheme>,
): Payload => {
  const { emptyBody } = scheme
  return emptyBody && body.bytes.length === 0
    ? Object.fromEntries(emptyBody.flatMap((name) => toEntry(name, headers[name]?.[0])))
    : hideBodyToken(parse(body, toBodyHeaders(headers), scheme), scheme)
}

const toEntry = (name: string, value: string | undefined): [string, string][] =>
  value === undefined ? [] : [[name, value]]

/*
 * A token that proves the sender and is a field of the body: it is a secret, and goes into no prompt, answer,
 * file or program.
 */

const placeOf = ({ check, in: place, field }: SignatureForm): Path | undefined => {
  if (check === 'client-state') return ['value', each, 'clientState']
  return place === 'field' ? field : undefined
}

export const hasBodyToken = ({ forms = [] }: Partial<SignatureScheme>): boolean =>
  forms.some((form) => placeOf(form) !== undefined)

/** Replaces it in a payload that was just parsed. */
const hideBodyToken = (payload: Payload, { forms = [] }: Partial<SignatureScheme>): Payload => {
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
