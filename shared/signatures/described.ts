import type { MacAlgorithm, SignatureForm, SignedPart } from './form.ts'
import {
  anyIdHeader,
  overBody,
  presetScheme,
  type SchemeAlias,
  schemeAliases,
  type SchemeName,
} from './presets.ts'
import type { SignatureScheme } from './scheme.ts'

/** What the owner of a webhook says of a sender that has no preset. */
export type DescribedFields = {
  readonly header: string
  readonly algorithm: MacAlgorithm
  readonly prefix: string
  readonly encoding?: SignatureForm['encoding']
  readonly param?: string | undefined
  readonly signs?: readonly SignedPart[]
  readonly timestampHeader?: string | undefined
  readonly timestampParam?: string | undefined
  readonly timestampUnit?: SignatureForm['timestampUnit']
  readonly idHeader?: string | undefined
  readonly secret?: 'text' | 'hex' | 'base64'
}

/** Both directions, as Stripe and Standard Webhooks do by default. */
const describedTolerance = 300

/** The scheme of this name or alias; `fields` are for `hmac`. */
export const toScheme = (
  name: SchemeName | SchemeAlias,
  fields: DescribedFields,
): SignatureScheme => {
  const scheme = name === 'svix' ? schemeAliases.svix : name
  return scheme === 'hmac' ? hmacScheme(fields) : presetScheme(scheme)
}

/** An HMAC as its owner describes it. */
export const hmacScheme = (fields: DescribedFields): SignatureScheme => {
  const { header, algorithm, prefix, encoding = 'hex', param, signs = ['{body}'] } = fields
  const { timestampHeader, timestampParam, timestampUnit = 's', idHeader, secret = 'text' } = fields
  const isList = param !== undefined || timestampParam !== undefined
  return {
    name: 'hmac',
    forms: [
      {
        ...overBody,
        header,
        algorithm,
        prefix,
        encoding,
        anyCase: true,
        list: isList ? 'commas-or-semicolons' : 'one',
        signs,
        timestampUnit,
        secret,
        ...(param !== undefined && { param }),
        ...(timestampHeader !== undefined && { timestampHeader }),
        ...(timestampParam !== undefined && { timestampParam }),
        ...(idHeader !== undefined && { idHeader }),
      },
    ],
    ...(signs.includes('{timestamp}') && { toleranceSeconds: describedTolerance }),
    deliveryId: { headers: idHeader === undefined ? anyIdHeader : [idHeader] },
    handshake: 'github',
    source: 'RFC 2104',
  }
}
