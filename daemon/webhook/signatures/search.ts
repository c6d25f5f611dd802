import { createHmac } from 'node:crypto'
import type { MacAlgorithm, SignatureForm } from '../../../shared/signatures/form.ts'
import { presetSchemes } from '../../../shared/signatures/presets.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { SignatureHeaders } from './header.ts'
import type { RequestLine } from './token.ts'

/*
 * Looks for what the sender did send, where the scheme expects something else: the secret itself in another
 * place, or an HMAC in another header, encoding, algorithm or form. For the owner alone.
 */

export type SearchedRequest = {
  readonly bytes: Buffer
  readonly headers: SignatureHeaders
  readonly line: RequestLine
  readonly secrets: readonly string[]
}

const maxValueLength = 4096
const maxHashes = 40
const maxHashedBytes = 2 * 1024 * 1024
const maxFieldBytes = 64 * 1024

/** Says where the secret itself is, undefined where it is nowhere. */
export const findToken = (request: SearchedRequest): string | undefined => {
  const place = findPlace(request)
  if (place === undefined) return undefined
  const preset = presetSchemes.find(({ forms }) => forms.some((form) => isAt(form, place)))
  const name = toPlainLine(place).slice(0, 80)
  return preset
    ? `the secret itself is in ${name}, as ${preset.name} sends it: set signature_scheme: ${preset.name}`
    : `the secret itself is in ${name}: set signature_scheme: token and token_in: ${name}`
}

const isAt = ({ check, in: place, header }: SignatureForm, found: string): boolean =>
  check === 'token' && place === undefined && found === `header:${header}`

const findPlace = ({ headers, line, bytes, secrets }: SearchedRequest): string | undefined => {
  const isSecret = (text: string) => text !== '' && secrets.includes(text)
  for (const [name, value] of listValues(headers)) {
    if (isSecret(value)) return `header:${name}`
    const [, scheme = '', credentials = ''] = /^(bearer|basic) +(.+)$/i.exec(value) ?? []
    if (name !== 'authorization' || scheme === '') continue
    if (scheme.toLowerCase() === 'bearer' && isSecret(credentials)) return 'bearer'
    const pair = Buffer.from(credentials, 'base64').toString('utf8')
    if (isSecret(pair) || isSecret(pair.slice(pair.indexOf(':') + 1))) return 'basic'
  }
  const { url = '' } = line
  const query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '')
  for (const [name, value] of query) if (isSecret(value)) return `query:${name}`
  for (const [name, value] of listFields(bytes))
    if (typeof value === 'string' && isSecret(value)) return `field:${name}`
  return undefined
}

const listValues = (headers: SignatureHeaders): [string, string][] =>
  Object.entries(headers)
    .flatMap(([name, values = []]) => values.map((value): [string, string] => [name, value]))
    .filter(([, { length }]) => length <= maxValueLength)

const listFields = (bytes: Buffer): [string, unknown][] => {
  if (bytes.length > maxFieldBytes) return []
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null ? Object.entries(value) : []
  } catch {
    return []
  }
}

/** What a text of this length can be. */
const digests: Readonly<Record<number, readonly [MacAlgorithm, Encoding]>> = {
  40: ['sha1', 'hex'],
  64: ['sha256', 'hex'],
  128: ['sha512', 'hex'],
  28: ['sha1', 'base64'],
  44: ['sha256', 'base64'],
  88: ['sha512', 'base64'],
  27: ['sha1', 'base64url'],
  43: ['sha256', 'base64url'],
  86: ['sha512', 'base64url'],
}

type Encoding = 'hex' | 'base64' | 'base64url'

type Candidate = {
  readonly header: string
  readonly before: string
  readonly algorithm: MacAlgorithm
  readonly encoding: Encoding
  readonly text: string
}

type Found = Candidate & { readonly signed: string }

/** Says which header has an HMAC of this body, and how to describe it; undefined where none has. */
export const findSignature = (request: SearchedRequest): string | undefined => {
  const found = searchSignature(request)
  if (!found) return undefined
  const { header, before, algorithm, encoding, signed } = found
  const [, param, prefix = before] = /(?:^|[,; ])([\w-]+)=([^=,; ]*=)?$/.exec(before) ?? []
  // `sha256=` alone is a prefix, `t=1,v1=` a list.
  const isList = param !== undefined && /[,;]/.test(before)
  const described = isList
    ? [`signature_param: ${param}`]
    : [`signature_prefix: '${toPlainLine(prefix)}'`]
  return `the header ${header} has the signature, by ${algorithm} in ${encoding} of ${signed}: set ${[
    `signature_header: ${header}`,
    `signature_algo: ${algorithm}`,
    `signature_encoding: ${encoding}`,
    ...described,
    ...(signed === '{body}' ? [] : [`signed: '${signed}' and where its time is`]),
  ].join(', ')}`
}

const searchSignature = ({ bytes, headers, secrets }: SearchedRequest): Found | undefined => {
  const values = listValues(headers)
  const candidates = values.flatMap(listCandidates)
  const algorithms = new Set(candidates.map(({ algorithm }) => algorithm))
  let hashes = 0
  for (const [signed, head] of listHeads(values))
    for (const secret of secrets)
      for (const algorithm of algorithms) {
        hashes += 1
        if (hashes > maxHashes || hashes * bytes.length > maxHashedBytes) return undefined
        const digest = createHmac(algorithm, secret).update(head, 'latin1').update(bytes).digest()
        const found = candidates.find(
          ({ encoding, text, ...other }) =>
            other.algorithm === algorithm &&
            digest.toString(encoding) === (encoding === 'hex' ? text.toLowerCase() : text),
        )
        if (found) return { ...found, signed }
      }
  return undefined
}

/** The parts of a header that can be a signature. */
const listCandidates = ([header, value]: readonly [string, string]): Candidate[] =>
  [...value.matchAll(/[\w+/-]{27,}={0,2}/g)].flatMap(({ 0: text, index }) => {
    const [algorithm, encoding] = digests[text.length] ?? []
    if (algorithm === undefined || encoding === undefined) return []
    return { header, before: value.slice(0, index), algorithm, encoding, text }
  })

/** What may be signed before the body: nothing, or a time that a header has. */
const listHeads = (values: readonly (readonly [string, string])[]): [string, string][] => {
  const times = values.flatMap(([name, value]) =>
    /time|sig/.test(name) ? (/(?<!\d)\d{10}(?:\d{3})?(?!\d)/.exec(value) ?? []) : [],
  )
  return [
    ['{body}', ''],
    ...[...new Set(times)]
      .slice(0, 3)
      .flatMap((time): [string, string][] =>
        ['.', '', ':'].map((between) => [`{timestamp}${between}{body}`, `${time}${between}`]),
      ),
  ]
}
