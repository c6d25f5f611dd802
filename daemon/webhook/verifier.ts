import { createHash } from 'node:crypto'
import {
  keyBytes,
  type SignatureForm,
  type SignatureScheme,
} from '../../shared/signature-schemes.ts'
import { type Mac, prepareMac } from './mac.ts'

/** One form with what it is checked against, prepared once for all requests. */
export type ReadyForm = SignatureForm & {
  /** Of each key, any of which may have signed. */
  readonly macs: readonly Mac[]
  /** SHA-256 of each token, so that tokens of any length compare in one time. */
  readonly tokens: readonly Buffer[]
  readonly toleranceSeconds: number
}

/**
 * What a delivery is verified with: `none` when no secret is asked for, `unset` when those that are
 * named hold nothing, `unusable` when none of them is a secret of the scheme.
 */
export type Verifier = 'none' | 'unset' | 'unusable' | readonly [ReadyForm, ...ReadyForm[]]

/** Prepares the forms of a scheme for which there is a secret. A scheme has one tolerance for all. */
export const prepareVerifier = (
  scheme: SignatureScheme,
  secrets: readonly string[],
): readonly [ReadyForm, ...ReadyForm[]] | 'unusable' => {
  const [first, ...more] = scheme.forms
    .map((form) => readyForm(form, secrets, scheme.toleranceSeconds ?? 0))
    .filter(({ macs, tokens }) => macs.length + tokens.length > 0)
  return first ? [first, ...more] : 'unusable'
}

const readyForm = (
  form: SignatureForm,
  secrets: readonly string[],
  toleranceSeconds: number,
): ReadyForm => {
  const known = secrets.flatMap((secret) => keyBytes(form, secret) ?? [])
  const isMac = form.check === 'mac'
  return {
    ...form,
    macs: isMac ? known.map((bytes) => prepareMac(form.algorithm, bytes)) : [],
    tokens: isMac ? [] : known.map(tokenDigest),
    toleranceSeconds,
  }
}

/** What tokens are compared by. */
export const tokenDigest = (token: Buffer): Buffer => createHash('sha256').update(token).digest()
