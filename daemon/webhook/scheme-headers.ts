import type { SignatureScheme } from '../../shared/signature-schemes.ts'
import type { BodyHeaders } from './parse.ts'
import type { SignatureHeaders } from './read-signature.ts'

/** What a web page sends, the handshake of GitHub, and how a body is written, whatever the scheme. */
const always = [
  'origin',
  'sec-fetch-site',
  'x-github-event',
  'content-length',
  'content-type',
  'content-encoding',
]

/** The headers that are looked at in a delivery of this scheme, in lower case. */
export const headerNamesOf = ({ forms, deliveryId }: SignatureScheme): readonly string[] => {
  const ofForms = forms.flatMap(({ header, timestampHeader, idHeader }) =>
    [header, timestampHeader, idHeader].filter((name) => name !== undefined),
  )
  return [...new Set([...ofForms, ...deliveryId.headers, ...always])].map((name) =>
    name.toLowerCase(),
  )
}

/**
 * Every value of these headers apart, as `headersDistinct` of node:http has those of all headers, which
 * costs a delivery more than its verification. Its `headers`, too, is an object of another shape for each
 * order that a sender writes them in, so that V8 throws away what it has made of all code that reads there.
 */
export const headersNamed = (
  rawHeaders: readonly string[],
  names: readonly string[],
): SignatureHeaders => {
  const found = Object.create(null) as Record<string, string[]>
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    let lower: string | undefined
    for (const name of names) {
      if (name.length !== given.length || name !== (lower ??= given.toLowerCase())) continue
      const values = found[name]
      if (values) values.push(value)
      else found[name] = [value]
    }
  }
  return found
}

/** How the body is written that comes with these headers, as node:http reads it: one type, any number of codings. */
export const bodyHeadersOf = (given: SignatureHeaders): BodyHeaders => ({
  'content-type': given['content-type']?.[0],
  'content-encoding': given['content-encoding']?.join(', '),
})
