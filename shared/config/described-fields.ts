import { z } from 'zod'
import { describedNames } from '../signatures/presets.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import { headerName } from './values.ts'

/*
 * The fields of a webhook that say what a sender without a name here does besides signing: where it names the
 * event, and how it tests an address.
 */

const memberName = z
  .string()
  .regex(/^[\w.:-]{1,64}$/, 'not a name of at most 64 letters, digits and . _ : -')

export const describedFields = {
  event_header: headerName
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: header with the name of the event, for on. Default: none.',
    ),
  event_field: z
    .string()
    .regex(/^[\w-]+(\.[\w-]+)*$/, 'not a path such as event.type')
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: field of the body with the name of the event, as data.type; it counts before event_header. Default: none.',
    ),
  answer: z
    .union([
      z.literal('empty'),
      z.strictObject({
        status: z.int().min(200).max(299).describe('Status, 200 to 299.'),
        text: z.string().max(1000).describe('Body of the response.'),
      }),
    ])
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: what the sender is answered, empty (200 without a body) or a map of status and text. Default: 202 with the id as JSON.',
    ),
  body_type: z
    .enum(['text', 'ndjson', 'xml'])
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: what a body is, text, xml, or ndjson for JSON in each line (the payload is a list). Default: JSON or a form.',
    ),
  gzip: z
    .literal(true)
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: true for a sender that compresses bodies, and signs them compressed. Default: answered 415.',
    ),
  challenge: z
    .strictObject({
      query: memberName
        .optional()
        .describe('Parameter of the query with the text that is sent back.'),
      header: headerName.optional().describe('Header with that text.'),
      json: memberName
        .optional()
        .describe('Member of a JSON object for the answer. Default: plain text.'),
      hmac: z
        .enum(['sha256', 'sha1', 'sha512'])
        .optional()
        .describe('Sends back the HMAC of the text by the secret, in place of the text.'),
      encoding: z.enum(['hex', 'base64']).optional().describe('Encoding of the HMAC. Default hex.'),
      prefix: z
        .string()
        .regex(/^[\x21-\x7e]{1,32}$/, 'not at most 32 visible characters')
        .optional()
        .describe('Text before the HMAC. Default: none.'),
    })
    .optional()
    .describe(
      'With hmac, token, public-key and oidc: how the sender tests the address by GET or HEAD, a map of query or header, and of json, hmac, encoding and prefix if it asks for them. Default: 405.',
    ),
}

type DescribedEntry = z.output<z.ZodObject<typeof describedFields>>
type Entry = DescribedEntry & { readonly signature_scheme: string }

type Report = (key: readonly string[], reason: string, hint?: string) => void

const isDescribed = (scheme: string): boolean =>
  (describedNames as readonly string[]).includes(scheme)

/** Reports fields that the scheme defines, and a challenge that cannot be answered. */
export const checkDescribedFields = (entry: Entry, report: Report): void => {
  const { signature_scheme: scheme, challenge } = entry
  for (const field of Object.keys(describedFields) as (keyof typeof describedFields)[])
    if (entry[field] !== undefined && !isDescribed(scheme))
      report(
        [field],
        `cannot be combined with signature_scheme ${scheme}, which defines it`,
        `remove it, or write signature_scheme: ${describedNames.join(' or ')}`,
      )
  if (!challenge) return
  const { query, header, hmac, encoding, prefix } = challenge
  if ((query === undefined) === (header === undefined))
    report(['challenge'], 'needs either query or header', 'write where the sender puts its text')
  if (hmac !== undefined && scheme !== 'hmac')
    report(
      ['challenge', 'hmac'],
      `signature_scheme ${scheme} has no secret that makes an HMAC`,
      'remove it, or write signature_scheme: hmac',
    )
  if (hmac === undefined && (encoding ?? prefix) !== undefined)
    report(['challenge'], 'encoding and prefix are those of an HMAC', 'add hmac, or remove them')
}

/** True where the entry says where its sender names the event. */
export const namesEvent = ({ event_header: header, event_field: field }: DescribedEntry): boolean =>
  header !== undefined || field !== undefined

/** What a checked entry adds to its scheme. */
export const readDescribed = (
  entry: DescribedEntry,
): Pick<SignatureScheme, 'event' | 'challenge' | 'emptyReply' | 'answer' | 'bodyType' | 'gzip'> => {
  const { event_header: header, event_field: field, challenge, answer } = entry
  const { body_type: bodyType, gzip } = entry
  return {
    ...(bodyType && { bodyType }),
    ...(gzip && { gzip }),
    ...(namesEvent(entry) && {
      event: { ...(header !== undefined && { header }), ...(field !== undefined && { field }) },
    }),
    ...(challenge && { challenge }),
    ...(answer === 'empty' ? { emptyReply: true } : answer && { answer }),
  }
}
