import { createHmac, randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { listSecrets } from '../../../shared/config/environment.ts'
import { describeUnset } from '../../../shared/config/variables.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { keyBytes, type SignatureScheme, signedHead } from '../../../shared/signature-schemes.ts'
import { didYouMean } from '../../../shared/text.ts'
import { packageFolder } from '../../../shared/version.ts'

/** What a sender would send, still without its signature. */
export type Delivery = {
  readonly body: Buffer
  readonly deliveryId: string
  readonly headers: Readonly<Record<string, string>>
}

/** A payload of one's own, with the headers of the webhook's sender; `event` is the kind it says it is. */
export const ownDelivery = (
  webhook: Webhook,
  payload: Buffer,
  nowMs: number,
  event?: string,
): Delivery => {
  const { scheme } = webhook
  const deliveryId = randomUUID()
  return {
    // Linear puts the time of sending into the body.
    body:
      scheme.bodyTimestamp === undefined
        ? payload
        : stampBody(payload, scheme.bodyTimestamp, nowMs),
    deliveryId,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'doorward',
      ...(scheme.eventHeader !== undefined &&
        event !== undefined && { [scheme.eventHeader]: event }),
      ...toIdHeader(webhook, deliveryId),
    },
  }
}

/** Where the sender does not sign the id, it is in a header of its own. */
const toIdHeader = ({ scheme }: Webhook, deliveryId: string): Record<string, string> => {
  const [name, second] = scheme.deliveryId.headers
  const isSigned = scheme.forms.every(({ idHeader }) => idHeader !== undefined)
  // A sender that is not known names it in a header that the owner has named, or not at all.
  const isAnyOf = scheme.name === 'hmac' && second !== undefined
  return name === undefined || isAnyOf || isSigned ? {} : { [name]: deliveryId }
}

/** A built-in payload with the headers of its sender, under an id of its own. */
export const sampleDelivery = ({ sender, event, contentType, body }: Sample): Delivery => {
  const deliveryId = randomUUID()
  const type = { 'content-type': contentType }
  switch (sender) {
    case 'github':
      return {
        body,
        deliveryId,
        headers: {
          ...type,
          'user-agent': 'GitHub-Hookshot/doorward',
          'x-github-event': event,
          'x-github-delivery': deliveryId,
        },
      }
    case 'stripe':
      return {
        body: renamed(body, 'id', `evt_${shortId()}`),
        deliveryId,
        headers: { ...type, 'user-agent': 'Stripe/1.0 (doorward)' },
      }
    case 'slack':
      return {
        body:
          contentType === 'application/json' ? renamed(body, 'event_id', `Ev${shortId()}`) : body,
        deliveryId,
        headers: { ...type, 'user-agent': 'Slackbot 1.0 (doorward)' },
      }
  }
}

const shortId = (): string => randomUUID().replaceAll('-', '').slice(0, 24)

/** A sample under an id of its own, as each event has: else the second one would be a duplicate. */
const renamed = (body: Buffer, field: string, id: string): Buffer => {
  const payload = JSON.parse(body.toString('utf8')) as Record<string, unknown>
  return Buffer.from(
    JSON.stringify(Object.hasOwn(payload, field) ? { ...payload, [field]: id } : payload, null, 2),
  )
}

/**
 * The headers of a delivery with the signature that the sender would make. Throws `unavailable` when
 * there is no secret, or none of the scheme.
 */
export const signedHeaders = (
  { path, scheme, secretNames }: Webhook,
  env: NodeJS.ProcessEnv,
  { body, deliveryId, headers }: Delivery,
  nowMs: number,
): Readonly<Record<string, string>> => {
  if (secretNames.length === 0) return headers
  const secrets = listSecrets(secretNames, env)
  const names = secretNames.join(', ')
  if (secrets.length === 0)
    throw new DoorwardError('unavailable', `cannot sign for ${path}: ${names} is unset or empty`, {
      hint: describeUnset(secretNames, env),
    })
  for (const secret of secrets) {
    const signature = signPayload(scheme, secret, body, { deliveryId, nowMs })
    if (signature) return { ...headers, ...signature }
  }
  throw new DoorwardError(
    'unavailable',
    `cannot sign for ${path}: ${names} holds no secret of the scheme ${scheme.name}`,
    { hint: 'doorward config check says what is wrong with it' },
  )
}

type SigningTime = {
  /** The id that goes into the signature, where the scheme signs one. */
  readonly deliveryId: string
  readonly nowMs: number
}

/**
 * The headers that the sender of this webhook would put on these bytes. Undefined when the secret is
 * none of the scheme.
 */
const signPayload = (
  scheme: SignatureScheme,
  secret: string,
  body: Buffer,
  { deliveryId, nowMs }: SigningTime,
): Record<string, string> | undefined => {
  const form = scheme.forms.findLast((candidate) => keyBytes(candidate, secret) !== undefined)
  const key = form && keyBytes(form, secret)
  if (!form || !key) return undefined
  // HTTP sends header values as Latin-1: these are the bytes of the token again.
  if (form.check === 'token') return { [form.header]: key.toString('latin1') }
  const timestamp = String(Math.floor(nowMs / 1000))
  const hmac = createHmac(form.algorithm, key)
  const head = signedHead(form.signs, timestamp, deliveryId)
  if (head !== undefined) hmac.update(head, 'latin1')
  const signature = form.prefix + hmac.update(body).digest(form.encoding)
  return {
    [form.header]: form.list === 'commas' ? `t=${timestamp},${signature}` : signature,
    ...(form.timestampHeader !== undefined && { [form.timestampHeader]: timestamp }),
    ...(form.idHeader !== undefined && { [form.idHeader]: deliveryId }),
  }
}

/**
 * A JSON object with a number under a key of its own, in place of what stands there or as its last
 * member. Every other byte stays: parsed and written anew, an integer over 2^53 would be another one.
 * What is no JSON object comes back as it is. `field` is in ASCII.
 */
export const stampBody = (body: Buffer, field: string, value: number): Buffer => {
  if (!isJsonObject(body.toString('utf8'))) return body
  // A character for each byte: what holds JSON together is ASCII, and no part of another character in UTF-8.
  const text = body.toString('latin1')
  const members = parseMembers(text)
  // Of a key that stands there twice, the last one counts.
  const place = members.findLast(({ key }) => key === field)
  const end = members.at(-1)?.to ?? text.indexOf('{') + 1
  const { from, to } = place ?? { from: end, to: end }
  const comma = members.length > 0 ? ',' : ''
  const put = place ? `${value}` : `${comma}"${field}":${value}`
  return Buffer.from(`${text.slice(0, from)}${put}${text.slice(to)}`, 'latin1')
}

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** A key of the outermost object, and where its value begins and ends. */
type Member = { readonly key: unknown; readonly from: number; readonly to: number }

const parseMembers = (text: string): Member[] => {
  const members: Member[] = []
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g
  let depth = 0
  let last = ''
  let key: unknown
  let from = 0
  let to = 0
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (depth === 1) {
      if (last === ':') from = index
      if (token === ':') key = JSON.parse(last)
      if (token === ',' || (token === '}' && last !== '{')) members.push({ key, from, to })
    }
    if (token === '{' || token === '[') depth += 1
    if (token === '}' || token === ']') depth -= 1
    last = token
    to = index + token.length
  }
  return members
}

export const sampleSenders = ['github', 'slack', 'stripe'] as const
export type SampleSender = (typeof sampleSenders)[number]

/** A built-in payload with the name of its event, as the sender's header says it. */
export type Sample = {
  readonly sender: SampleSender
  readonly event: string
  readonly contentType: string
  readonly body: Buffer
}

const folder = new URL('assets/samples/', packageFolder)

/** Kinds of files by what they end with. */
const contentTypes = {
  '.json': 'application/json',
  '.form': 'application/x-www-form-urlencoded',
} as const
type Ending = keyof typeof contentTypes
const endings = Object.keys(contentTypes) as Ending[]

type Known = { readonly sender: SampleSender; readonly name: string; readonly ending: Ending }

const knownSamples = async (): Promise<Known[]> => {
  const found = sampleSenders.map(async (sender) =>
    (await readdir(new URL(`${sender}/`, folder))).toSorted().flatMap((file): Known[] => {
      const ending = endings.find((candidate) => file.endsWith(candidate))
      return ending ? [{ sender, name: file.slice(0, -ending.length), ending }] : []
    }),
  )
  return (await Promise.all(found)).flat()
}

const fullName = ({ sender, name }: Known): string => `${sender}:${name}`

/** The names of the built-in payloads, sorted: `github:pull_request.opened`. */
export const sampleNames = async (): Promise<string[]> => (await knownSamples()).map(fullName)

/** The nearest name to one with or without its sender, or to the beginning of one. */
const nearestSample = (wanted: string, names: readonly string[]): string | undefined => {
  const begun = names.filter((name) =>
    ['', ...sampleSenders.map((sender) => `${sender}:`)].some((from) =>
      name.startsWith(`${from}${wanted}.`),
    ),
  )
  if (begun.length > 0) return `did you mean ${begun.map((name) => `"${name}"`).join(' or ')}?`
  return (
    didYouMean(wanted, names) ??
    sampleSenders.map((sender) => didYouMean(`${sender}:${wanted}`, names)).find(Boolean)
  )
}

/** Reads a built-in payload. Throws `usage` with the nearest name for one that does not exist. */
export const readSample = async (wanted: string): Promise<Sample> => {
  const samples = await knownSamples()
  const sample = samples.find((known) => fullName(known) === wanted)
  if (!sample) {
    const names = samples.map(fullName)
    throw new DoorwardError('usage', `there is no sample "${wanted}"`, {
      hint: nearestSample(wanted, names) ?? 'doorward webhook send --sample lists them',
    })
  }
  const { sender, name, ending } = sample
  return {
    sender,
    event: name.split('.')[0] ?? name,
    contentType: contentTypes[ending],
    body: await readFile(new URL(`${sender}/${name}${ending}`, folder)),
  }
}
