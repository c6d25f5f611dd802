import { createHash, createHmac, randomUUID } from 'node:crypto'
import { listSecrets } from '../config/environment.ts'
import { describeUnset } from '../config/variables.ts'
import type { Webhook } from '../config/webhook.ts'
import { DoorwardError } from '../errors.ts'
import type { Sample } from '../samples/samples.ts'
import { computeMac, type SignatureForm, type SignedValues } from '../signatures/form.ts'
import { getKeySource, type SignatureScheme, signsAddress } from '../signatures/scheme.ts'
import { keyBytes } from '../signatures/secrets.ts'
import { signByTestPair, signSpecial } from './signing-special.ts'

/** A delivery without its signature. */
export type Delivery = {
  readonly body: Buffer
  readonly deliveryId: string
  readonly headers: Readonly<Record<string, string>>
}

/** The user's own payload with the headers of the webhook's sender; `event` is the event name. */
export const ownDelivery = (
  webhook: Webhook,
  payload: Buffer,
  nowMs: number,
  event?: string,
): Delivery => {
  const { scheme } = webhook
  const deliveryId = randomUUID()
  return {
    // Linear sends its timestamp in the body.
    body:
      scheme.bodyTimestamp === undefined
        ? payload
        : stampBody(payload, scheme.bodyTimestamp, nowMs),
    deliveryId,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'doorward',
      ...(scheme.event?.header !== undefined &&
        event !== undefined && { [scheme.event.header]: event }),
      ...toIdHeader(webhook, deliveryId),
    },
  }
}

/** The header of the delivery id, for senders that do not sign the id. */
const toIdHeader = ({ scheme }: Webhook, deliveryId: string): Record<string, string> => {
  const [name, second] = scheme.deliveryId.headers
  const isSigned = scheme.forms.every(({ idHeader }) => idHeader !== undefined)
  // The hmac scheme has an id header only where the definition names one.
  const isAnyOf = scheme.name === 'hmac' && second !== undefined
  return name === undefined || isAnyOf || isSigned ? {} : { [name]: deliveryId }
}

/** What the samples of a sender are sent with; a second one with the same id would be a duplicate. */
const senders: Readonly<Record<string, { readonly agent: string; readonly id?: string }>> = {
  github: { agent: 'GitHub-Hookshot/doorward' },
  stripe: { agent: 'Stripe/1.0 (doorward)', id: 'id' },
  slack: { agent: 'Slackbot 1.0 (doorward)', id: 'event_id' },
}

/** A built-in payload with its sender's headers and a new id. */
export const sampleDelivery = (
  { sender, event, contentType, body }: Sample,
  webhook: Webhook,
  nowMs: number,
): Delivery => {
  const deliveryId = randomUUID()
  const known = senders[sender]
  if (!known) return ownDelivery(webhook, withNewId(body, webhook, deliveryId), nowMs, event)
  const { agent, id } = known
  const isRenamed = id !== undefined && contentType === 'application/json'
  const newId = `${sender === 'stripe' ? 'evt_' : 'Ev'}${deliveryId.replaceAll('-', '').slice(0, 24)}`
  return {
    body: isRenamed ? renamed(body, sender, id, newId) : body,
    deliveryId,
    headers: {
      'content-type': contentType,
      'user-agent': agent,
      ...(sender === 'github' && { 'x-github-event': event, 'x-github-delivery': deliveryId }),
    },
  }
}

/** A short sample with a new id, where its scheme names a field for one. */
const withNewId = (body: Buffer, { scheme }: Webhook, newId: string): Buffer => {
  const names = scheme.deliveryId.body?.split('.') ?? []
  const last = names.pop()
  if (last === undefined) return body
  const payload = JSON.parse(body.toString('utf8')) as unknown
  const holder = names.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null
        ? (value as Readonly<Record<string, unknown>>)[name]
        : undefined,
    payload,
  )
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, last)) return body
  ;(holder as Record<string, unknown>)[last] = newId
  return Buffer.from(JSON.stringify(payload, null, 2))
}

/** Gives a sample a new id, where it has one; a message of Slack is known by its time, too. */
const renamed = (body: Buffer, sender: string, field: string, id: string): Buffer => {
  const payload = JSON.parse(body.toString('utf8')) as Record<string, unknown>
  const { event } = payload
  const isMessage = sender === 'slack' && typeof event === 'object' && event && 'ts' in event
  const changed = {
    ...payload,
    ...(Object.hasOwn(payload, field) && { [field]: id }),
    ...(isMessage && { event: { ...event, ts: (Date.now() / 1000).toFixed(6) } }),
  }
  return Buffer.from(JSON.stringify(changed, null, 2))
}

/** Where the secrets are, and `server.public_url`, which some senders sign. */
export type SigningHome = {
  readonly env: NodeJS.ProcessEnv
  readonly publicUrl: string | undefined
}

/** The delivery as it is sent, with its signature or token. */
export type SignedDelivery = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** `?name=token` for a sender with its token in the query. */
  readonly search: string
  /** The public key of a pair that was made for this delivery, as only the sender has the right one. */
  readonly testKey?: string
}

/**
 * A delivery, signed as the sender would. Throws `unavailable` when no secret is set or none fits the
 * scheme.
 */
export const signDelivery = (
  { path, urlPaths, scheme, secretNames }: Webhook,
  { env, publicUrl }: SigningHome,
  { body, deliveryId, headers }: Delivery,
  nowMs: number,
): SignedDelivery => {
  if (secretNames.length === 0 && !getKeySource(scheme)) return { headers, body, search: '' }
  const secrets = listSecrets(secretNames, env)
  const names = secretNames.join(', ')
  if (secrets.length === 0 && secretNames.length > 0)
    throw new DoorwardError('unavailable', `cannot sign for ${path}: ${names} is unset or empty`, {
      hint: describeUnset(secretNames),
    })
  if (publicUrl === undefined && signsAddress(scheme))
    throw new DoorwardError('unavailable', `cannot sign for ${path}: the address is not known`, {
      hint: 'the signature covers it: set server.public_url in gateway.yaml',
    })
  const [urlPath = path] = urlPaths
  const url = (publicUrl ?? '').replace(/\/+$/, '') + urlPath
  // A sender that publishes its keys has no secret.
  for (const secret of secrets.length > 0 ? secrets : ['']) {
    const values = { id: deliveryId, method: 'POST', url, path: urlPath }
    const signature = signPayload(scheme, secret, body, values, nowMs)
    if (signature)
      return { body, search: '', ...signature, headers: { ...headers, ...signature.headers } }
  }
  throw new DoorwardError(
    'unavailable',
    `cannot sign for ${path}: ${names} is not a secret of the scheme ${scheme.name}`,
    { hint: 'doorward config check says what is wrong with it' },
  )
}

/** A JWT (RFC 7519) as Netlify and monday.com make it. */
const signJwt = (
  { check, audience }: SignatureForm,
  key: Buffer,
  body: Buffer,
  nowMs: number,
): string => {
  const now = Math.floor(nowMs / 1000)
  const claims =
    check === 'jwt'
      ? { aud: audience, iat: now, exp: now + 300 }
      : { iss: 'netlify', sha256: createHash('sha256').update(body).digest('hex') }
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
}

/** What the sender would add to this body. Undefined when the secret does not fit the scheme. */
const signPayload = (
  scheme: SignatureScheme,
  secret: string,
  body: Buffer,
  values: Omit<SignedValues, 'timestamp'>,
  nowMs: number,
): Partial<SignedDelivery> | undefined => {
  const form = scheme.forms.findLast((candidate) => keyBytes(candidate, secret) !== undefined)
  const key = form && keyBytes(form, secret)
  if (!form || !key) return undefined
  if (form.check === 'token') return addToken(form, key, body)
  if (form.check === 'jwt' || form.check === 'jwt-of-body')
    return { headers: { [form.header]: signJwt(form, key, body, nowMs) } }
  const timestamp = toTimestamp(form, nowMs)
  const signed = { ...values, timestamp }
  const special = signSpecial(form, { key, body, values: signed, nowMs })
  if (special) return special
  const byPair = form.check === 'key-pair' ? signByTestPair(form, body, signed) : undefined
  const digest = (byPair?.digest ?? computeMac(form, key, body, signed)).toString(form.encoding)
  const parts = [
    ...(form.timestampParam === undefined ? [] : [`${form.timestampParam}=${timestamp}`]),
    `${form.param === undefined ? '' : `${form.param}=`}${form.prefix}${digest}`,
  ]
  const headers = {
    [form.header]: parts.join(form.list === 'semicolons' ? ';' : ','),
    ...(form.timestampHeader !== undefined && { [form.timestampHeader]: timestamp }),
    ...(form.idHeader !== undefined && { [form.idHeader]: values.id }),
  }
  return { headers, ...(byPair && { testKey: byPair.testKey }) }
}

const addToken = (form: SignatureForm, token: Buffer, body: Buffer): Partial<SignedDelivery> => {
  // HTTP sends header values as Latin-1: these are the bytes of the token again.
  const inHeader = (value: string) => ({ headers: { [form.header]: value } })
  switch (form.in) {
    case undefined:
      return inHeader(token.toString('latin1'))
    case 'bearer':
      return inHeader(`Bearer ${token.toString('latin1')}`)
    case 'basic': {
      const pair = token.includes(':') ? token : Buffer.concat([Buffer.from('doorward:'), token])
      return inHeader(`Basic ${pair.toString('base64')}`)
    }
    case 'query': {
      const query = new URLSearchParams([[form.query ?? '', token.toString('utf8')]])
      return { search: `?${query.toString()}` }
    }
    case 'field': {
      const [name, ...more] = form.field ?? []
      if (typeof name === 'string' && more.length === 0)
        return { body: stampBody(body, name, token.toString('utf8')) }
      throw new DoorwardError('unavailable', `cannot put the token at ${form.fieldText}`, {
        hint: 'only a field of the outermost object can be filled in here',
      })
    }
  }
}

const toTimestamp = ({ timestampUnit }: SignatureForm, nowMs: number): string => {
  if (timestampUnit === 'iso') return new Date(nowMs).toISOString()
  return String(timestampUnit === 's' ? Math.floor(nowMs / 1000) : nowMs)
}

/**
 * Adds a number or text as the last member of a JSON object: of duplicate keys the last one counts. All other
 * bytes stay: parsing and writing again would change integers over 2^53. A body that is not a JSON
 * object is returned unchanged.
 */
export const stampBody = (body: Buffer, field: string, value: number | string): Buffer => {
  const isEmpty = isEmptyObject(body.toString('utf8'))
  if (isEmpty === undefined) return body
  const end = body.lastIndexOf('}')
  const member = `${isEmpty ? '' : ','}${JSON.stringify(field)}:${JSON.stringify(value)}`
  return Buffer.concat([body.subarray(0, end), Buffer.from(member), body.subarray(end)])
}

/** Undefined for what is not a JSON object. */
const isEmptyObject = (text: string): boolean | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return Object.keys(value).length === 0
  } catch {
    return undefined
  }
}
