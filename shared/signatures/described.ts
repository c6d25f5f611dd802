import { parsePath } from '../paths.ts'
import {
  type KeyAlgorithm,
  type MacAlgorithm,
  overBody,
  type SignatureForm,
  type SignedPart,
} from './form.ts'
import {
  anyIdHeader,
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
  /** Of a key pair. */
  readonly keyAlgorithm?: KeyAlgorithm | undefined
  /** Of a token: `bearer`, `basic`, `header:<name>`, `query:<name>` or `field:<path>`. */
  readonly tokenIn?: string | undefined
}

/** Both directions, as Stripe and Standard Webhooks do by default. */
const describedTolerance = 300

/** The scheme of this name or alias; `fields` are for those that their owner describes. */
export const toScheme = (
  name: SchemeName | SchemeAlias,
  fields: DescribedFields,
): SignatureScheme<SchemeName> => {
  const scheme = isAlias(name) ? schemeAliases[name] : name
  switch (scheme) {
    case 'hmac':
      return hmacScheme(fields)
    case 'token':
      return tokenScheme(fields.tokenIn)
    case 'public-key':
      return publicKeyScheme(fields)
    case 'oidc':
      return oidcScheme
    default:
      return presetScheme(scheme)
  }
}

const isAlias = (name: string): name is SchemeAlias => Object.hasOwn(schemeAliases, name)

/** An HMAC as its owner describes it. */
export const hmacScheme = (fields: DescribedFields): SignatureScheme<'hmac'> => {
  const { algorithm, secret = 'text', signs, idHeader } = fields
  return {
    name: 'hmac',
    title: 'any sender with an HMAC',
    secretIs: 'the secret that both sides have',
    where:
      'its settings; it signs in the header x-hub-signature-256 as GitHub does, or as the fields of hmac say',
    makesSecret: true,
    forms: [{ ...describedForm(fields), algorithm, secret }],
    ...(signs?.includes('{timestamp}') && { toleranceSeconds: describedTolerance }),
    deliveryId: { headers: idHeader === undefined ? anyIdHeader : [idHeader] },
    handshake: 'github',
    source: 'RFC 2104',
  }
}

/** A signature by a key pair as its owner describes it. */
const publicKeyScheme = (fields: DescribedFields): SignatureScheme<'public-key'> => {
  const { keyAlgorithm = 'ed25519', signs, idHeader } = fields
  return {
    name: 'public-key',
    title: 'any sender with a key pair',
    secretIs: 'the public key of the sender',
    where: 'its settings; what it signs, and in which header, is said by the fields of public-key',
    forms: [{ ...describedForm(fields), check: 'key-pair', keyAlgorithm, secret: 'public-key' }],
    ...(signs?.includes('{timestamp}') && { toleranceSeconds: describedTolerance }),
    deliveryId: { headers: idHeader === undefined ? anyIdHeader : [idHeader] },
    source: 'RFC 8032, RFC 8017, FIPS 186-5',
  }
}

/** What a signature by a secret and one by a key pair have in common. */
const describedForm = (fields: DescribedFields): SignatureForm => {
  const { header, prefix, encoding = 'hex', param, signs = ['{body}'] } = fields
  const { timestampHeader, timestampParam, timestampUnit = 's', idHeader } = fields
  const isList = param !== undefined || timestampParam !== undefined
  return {
    ...overBody,
    header,
    prefix,
    encoding,
    anyCase: true,
    list: isList ? 'commas-or-semicolons' : 'one',
    signs,
    timestampUnit,
    ...(param !== undefined && { param }),
    ...(timestampHeader !== undefined && { timestampHeader }),
    ...(timestampParam !== undefined && { timestampParam }),
    ...(idHeader !== undefined && { idHeader }),
  }
}

/** A token of any issuer, which proves the sender and not the body. */
const oidcScheme: SignatureScheme<'oidc'> = {
  name: 'oidc',
  title: 'any sender with a token by OpenID Connect',
  secretIs: 'nothing: the issuer publishes its keys',
  where: 'its settings; it sends the token as Authorization: Bearer, for your audience',
  forms: [{ ...overBody, check: 'oidc', header: 'authorization', keysFrom: 'issuer' }],
  deliveryId: { headers: anyIdHeader },
  source: 'https://openid.net/specs/openid-connect-discovery-1_0.html',
}

/** A sender that sends the secret itself. Throws `config-invalid` for a path that cannot be read. */
const tokenScheme = (tokenIn = 'bearer'): SignatureScheme<'token'> => ({
  name: 'token',
  title: 'any sender with a token',
  secretIs: 'the token that the sender sends',
  where: 'its settings; it sends the token as Authorization: Bearer, or where token_in says',
  makesSecret: true,
  forms: [{ ...overBody, check: 'token', ...readPlace(tokenIn) }],
  deliveryId: { headers: anyIdHeader },
  source: 'RFC 6750, RFC 7617',
})

type TokenPlace = Pick<SignatureForm, 'header' | 'in' | 'query' | 'field' | 'fieldText'>

const readPlace = (text: string): TokenPlace => {
  const [place = '', name = ''] = text.split(/:(.*)/s)
  switch (place) {
    case 'header':
      return { header: name.toLowerCase() }
    case 'query':
      return { header: '', in: 'query', query: name }
    case 'field':
      return { header: '', in: 'field', field: parsePath(name), fieldText: name }
    case 'basic':
      return { header: 'authorization', in: 'basic' }
    default:
      return { header: 'authorization', in: 'bearer' }
  }
}
