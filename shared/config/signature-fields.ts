import { z } from 'zod'
import { DoorwardError } from '../errors.ts'
import { parsePath } from '../paths.ts'
import { toScheme } from '../signatures/described.ts'
import { keyAlgorithms, parseSigned } from '../signatures/form.ts'
import {
  describedNames,
  type SchemeAlias,
  schemeAliases,
  schemeNames,
} from '../signatures/presets.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import { headerNameForm } from './name-forms.ts'
import { headerName } from './values.ts'

/*
 * The fields of a webhook that say how its sender signs: the name of a sender, or a description.
 */

const paramName = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'not the name of a signature')

const tokenPlace = z.string().superRefine((text, context) => {
  const fault = findPlaceFault(text)
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})

const findPlaceFault = (text: string): string | undefined => {
  const [place, name] = text.split(/:(.*)/s)
  if ((place === 'bearer' || place === 'basic') && name === undefined) return undefined
  if (place === 'header')
    return headerNameForm.test(name ?? '') ? undefined : 'header: needs the name of a header'
  if (place === 'query') return name ? undefined : 'query: needs the name of a parameter'
  if (place !== 'field')
    return 'not a place of a token: write bearer, basic, header:<name>, query:<name> or field:<path>'
  try {
    parsePath(name ?? '')
    return undefined
  } catch (error) {
    return error instanceof DoorwardError ? error.message : String(error)
  }
}

const usualHeader = 'x-hub-signature-256'

/** The fields that describe a signature. Their defaults are in `readScheme`: what is not given stays undefined. */
const describingFields = {
  signature_header: headerName
    .optional()
    .meta({ default: usualHeader })
    .describe(
      `With hmac and public-key: header with the signature. Default ${usualHeader}; required with public-key.`,
    ),
  signature_algo: z
    .enum(['sha256', 'sha1', 'sha512'])
    .optional()
    .meta({ default: 'sha256' })
    .describe('With hmac: algorithm. Default sha256.'),
  algorithm: z
    .enum(keyAlgorithms)
    .optional()
    .describe('With public-key: how the sender signs; required.'),
  signature_encoding: z
    .enum(['hex', 'base64', 'base64url'])
    .optional()
    .meta({ default: 'hex' })
    .describe(
      'With hmac and public-key: encoding of the signature; hex digits may have either case. Default hex, with public-key base64.',
    ),
  signature_prefix: z
    .string()
    .optional()
    .describe(
      'With hmac and public-key: the text before the signature; may be empty. Default: the algorithm, as sha256=; none with signature_param, base64 or public-key.',
    ),
  signature_param: paramName
    .optional()
    .describe(
      'With hmac and public-key: the header is a list of name=value between commas or semicolons, and this names the signature: v1 of t=…,v1=…. Default: none.',
    ),
  signed: z
    .string()
    .optional()
    .describe(
      'With hmac and public-key: what is signed, of {timestamp}, {id}, {method}, {url} (server.public_url with path and query), {path} and {body}, where a body that is not last must be a JSON object or list. Default {body}.',
    ),
  timestamp_header: headerName
    .optional()
    .describe('With hmac and public-key: header with the signed time. Default: none.'),
  timestamp_param: paramName
    .optional()
    .describe(
      'With hmac and public-key: name of the signed time in the list of signature_param. Default: none.',
    ),
  timestamp_unit: z
    .enum(['s', 'ms', 'iso'])
    .optional()
    .meta({ default: 's' })
    .describe(
      'With hmac and public-key: Unix seconds, Unix milliseconds, or a date by ISO 8601. Default s.',
    ),
  id_header: headerName
    .optional()
    .describe('With hmac and public-key: header with the signed id of a delivery. Default: none.'),
  secret_encoding: z
    .enum(['text', 'hex', 'base64'])
    .optional()
    .meta({ default: 'text' })
    .describe(
      'With hmac: how the secret becomes the key: as it is, or decoded; base64 may have whsec_ before it. Default text.',
    ),
}

export const signatureFields = {
  signature_scheme: z
    .enum([...schemeNames, ...(Object.keys(schemeAliases) as SchemeAlias[])])
    .default('hmac')
    .describe(
      'How the sender proves itself: the name of a sender, or hmac, token, public-key or oidc with the fields below. Default hmac.',
    ),
  ...describingFields,
  token_in: tokenPlace
    .optional()
    .describe(
      'With token: where the sender sends the secret itself: bearer, basic, header:<name>, query:<name> or field:<path>. Of basic the password counts, or user:password where the secret has a colon. Default bearer.',
    ),
}

type SignatureEntry = z.output<z.ZodObject<typeof signatureFields>>

type Report = (key: readonly [string], reason: string, hint?: string) => void

/** Reports fields that do not go together. */
export const checkSignatureFields = (entry: SignatureEntry, report: Report): void => {
  const { signature_scheme: scheme, signed = '{body}' } = entry
  refuseForeignFields(entry, scheme, report)
  if (scheme === 'public-key')
    for (const field of ['algorithm', 'signature_header'] as const)
      if (entry[field] === undefined)
        report(['signature_scheme'], `public-key needs ${field}`, 'write what the sender documents')
  if (scheme !== 'hmac' && scheme !== 'public-key') return
  try {
    parseSigned(signed)
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    report(['signed'], error.message, error.hint)
    return
  }
  const { timestamp_header: header, timestamp_param: param, signature_param: list } = entry
  if (header !== undefined && param !== undefined)
    report(['timestamp_param'], 'cannot be combined with timestamp_header', 'remove one of them')
  else if (param !== undefined && list === undefined)
    report(['timestamp_param'], 'needs signature_param', 'name the signature in the same list')
  else
    checkValue('{timestamp}', param === undefined ? 'timestamp_header' : 'timestamp_param', {
      entry,
      signed,
      report,
    })
  checkValue('{id}', 'id_header', { entry, signed, report })
}

/** The schemes that a field goes with; one that describes a signature goes with two. */
const schemesOf = (field: keyof SignatureEntry): readonly string[] => {
  if (field === 'token_in') return ['token']
  if (field === 'algorithm') return ['public-key']
  const isOfSecret = field === 'signature_algo' || field === 'secret_encoding'
  return isOfSecret ? ['hmac'] : ['hmac', 'public-key']
}

const refuseForeignFields = (entry: SignatureEntry, scheme: string, report: Report): void => {
  const defines = (describedNames as readonly string[]).includes(scheme) ? '' : ', which defines it'
  const fields = [...Object.keys(describingFields), 'token_in'] as (keyof SignatureEntry)[]
  for (const field of fields) {
    const owners = schemesOf(field)
    if (entry[field] !== undefined && !owners.includes(scheme))
      report(
        [field],
        `cannot be combined with signature_scheme ${scheme}${defines}`,
        `remove it, or write signature_scheme: ${owners.join(' or ')}`,
      )
  }
}

type Checked = { readonly entry: SignatureEntry; readonly signed: string; readonly report: Report }

/** A value that is signed has a place, and one with a place is signed. */
const checkValue = (
  name: '{timestamp}' | '{id}',
  field: 'timestamp_header' | 'timestamp_param' | 'id_header',
  { entry, signed, report }: Checked,
): void => {
  const isSigned = signed.includes(name)
  if (isSigned && entry[field] === undefined)
    report(['signed'], `${name} is signed, but no field says where it is`, `add ${field}`)
  if (!isSigned && entry[field] !== undefined)
    report(
      [field],
      `${name} is not in signed, so anyone could change it`,
      `add it as the sender signs it, such as signed: '${name}.{body}', or remove ${field}`,
    )
}

/** The headers that hold what proves the sender, and the field that says so. */
export const findSignatureHeaders = (
  entry: SignatureEntry,
): { readonly field: keyof SignatureEntry; readonly headers: readonly string[] } => {
  const {
    signature_scheme: name,
    signature_header: header = usualHeader,
    token_in: tokenIn,
  } = entry
  const { forms } = toScheme(name, { header, algorithm: 'sha256', prefix: '', tokenIn })
  const field =
    name === 'token'
      ? 'token_in'
      : name === 'hmac' || name === 'public-key'
        ? 'signature_header'
        : 'signature_scheme'
  return { field, headers: forms.map((form) => form.header) }
}

/** The scheme of a checked entry. */
export const readScheme = (entry: SignatureEntry): SignatureScheme => {
  const { signature_scheme: name, signature_algo: algorithm = 'sha256' } = entry
  const { signature_encoding: encoding = name === 'public-key' ? 'base64' : 'hex' } = entry
  // As GitHub writes hex; senders of base64 mostly have none.
  const isPrefixed = name === 'hmac' && entry.signature_param === undefined && encoding === 'hex'
  return toScheme(name, {
    header: entry.signature_header ?? usualHeader,
    algorithm,
    keyAlgorithm: entry.algorithm,
    prefix: entry.signature_prefix ?? (isPrefixed ? `${algorithm}=` : ''),
    encoding,
    param: entry.signature_param,
    signs: parseSigned(entry.signed ?? '{body}'),
    timestampHeader: entry.timestamp_header,
    timestampParam: entry.timestamp_param,
    timestampUnit: entry.timestamp_unit ?? 's',
    idHeader: entry.id_header,
    secret: entry.secret_encoding ?? 'text',
    tokenIn: entry.token_in,
  })
}
