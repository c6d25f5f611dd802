import {
  createHash,
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from 'node:crypto'
import { crc32 } from 'node:zlib'
import { DoorwardError } from '../errors.ts'
import {
  type KeyAlgorithm,
  type SignatureForm,
  type SignedValues,
  toSignedBytes,
} from '../signatures/form.ts'
import { addressAsAudience } from '../signatures/scheme.ts'

/*
 * Signing for senders that use neither an HMAC in a header nor a token. Where only the sender has the private
 * key, a key pair is made for the test.
 */

/** A sender would add these. With `testKey`, the public key by which the daemon has to verify it. */
export type SpecialSignature = {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly search?: string
  readonly testKey?: string
}

type ToSign = {
  readonly key: Buffer
  readonly body: Buffer
  readonly values: SignedValues
  readonly nowMs: number
}

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

const pairs: { readonly [Algorithm in KeyAlgorithm]: () => Pair } = {
  ed25519: () => generateKeyPairSync('ed25519'),
  'ecdsa-p256': p256,
  'rsa-sha256': rsa,
}
type Pair = { readonly publicKey: KeyObject; readonly privateKey: KeyObject }

const toPem = ({ publicKey }: Pair): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString()

const signJwt = (pair: Pair, claims: object): string => {
  const alg = pair.publicKey.asymmetricKeyType === 'rsa' ? 'RS256' : 'ES256'
  const signed = [{ alg, kid: randomUUID() }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const key = { key: pair.privateKey, dsaEncoding: 'ieee-p1363' } as const
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
}

/** A CI job or Google would send it like this, with the claims of the entry. */
const signByIssuer = (form: SignatureForm, { values, nowMs }: ToSign): SpecialSignature => {
  const pair = rsa()
  const now = Math.floor(nowMs / 1000)
  const { issuer = 'https://accounts.google.com', account, claims } = form
  // The address of the webhook without its path.
  const base = values.url.slice(0, values.url.length - values.path.length)
  const token = signJwt(pair, {
    iss: issuer,
    aud: form.audience === addressAsAudience ? base : form.audience,
    iat: now,
    exp: now + 300,
    ...(account !== undefined && { email: account, email_verified: true }),
    ...claims,
  })
  return { headers: { [form.header]: `Bearer ${token}` }, testKey: toPem(pair) }
}

const signPlaid = (form: SignatureForm, { body, nowMs }: ToSign): SpecialSignature => {
  const pair = p256()
  const token = signJwt(pair, {
    iat: Math.floor(nowMs / 1000),
    request_body_sha256: createHash('sha256').update(body).digest('hex'),
  })
  return { headers: { [form.header]: token }, testKey: toPem(pair) }
}

const signPaypal = (form: SignatureForm, { body, nowMs }: ToSign): SpecialSignature => {
  const pair = rsa()
  const [id, time] = [randomUUID(), new Date(nowMs).toISOString()]
  const signed = `${id}|${time}|${form.audience}|${crc32(body)}`
  const headers = {
    'paypal-transmission-id': id,
    'paypal-transmission-time': time,
    'paypal-auth-algo': 'SHA256withRSA',
    'paypal-cert-url': 'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-test',
    [form.header]: sign('sha256', Buffer.from(signed), pair.privateKey).toString('base64'),
  }
  return { headers, testKey: toPem(pair) }
}

/** A payload that is no message of SNS becomes the text of one. */
const signSns = (form: SignatureForm, { body, nowMs }: ToSign): SpecialSignature => {
  const pair = rsa()
  const given = parseObject(body)
  const message: Record<string, unknown> = {
    ...(typeof given['Type'] === 'string' && typeof given['Message'] === 'string'
      ? given
      : { Type: 'Notification', Message: body.toString('utf8') }),
    MessageId: randomUUID(),
    TopicArn: form.audience,
    Timestamp: new Date(nowMs).toISOString(),
  }
  const names = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
  const signed = names
    .filter((name) => typeof message[name] === 'string')
    .map((name) => `${name}\n${String(message[name])}\n`)
    .join('')
  const Signature = sign('sha256', Buffer.from(signed), pair.privateKey).toString('base64')
  const SigningCertURL = 'https://sns.us-east-1.amazonaws.com/test.pem'
  const whole = { ...message, SignatureVersion: '2', Signature, SigningCertURL }
  return { body: Buffer.from(JSON.stringify(whole)), testKey: toPem(pair) }
}

const hmac = (algorithm: 'sha1' | 'sha256', key: Buffer, text: string) =>
  createHmac(algorithm, key).update(text)

const signMailgun = (_: SignatureForm, { key, body, nowMs }: ToSign): SpecialSignature => {
  const timestamp = String(Math.floor(nowMs / 1000))
  const token = randomBytes(25).toString('hex')
  const signature = hmac('sha256', key, timestamp + token).digest('hex')
  const whole = { ...parseObject(body), signature: { timestamp, token, signature } }
  return { body: Buffer.from(JSON.stringify(whole)) }
}

/** A JSON body is covered by its hash in the query. */
const signTwilio = (form: SignatureForm, { key, body, values }: ToSign): SpecialSignature => {
  const search = `?bodySHA256=${createHash('sha256').update(body).digest('hex')}`
  const signature = hmac('sha1', key, values.url + search).digest('base64')
  return { headers: { [form.header]: signature }, search }
}

const signGraph = (_: SignatureForm, { key, body }: ToSign): SpecialSignature => {
  const given = parseObject(body)
  const items = Array.isArray(given['value']) ? (given['value'] as readonly object[]) : [given]
  const clientState = key.toString('utf8')
  const whole = { ...given, value: items.map((item) => ({ ...item, clientState })) }
  return { body: Buffer.from(JSON.stringify(whole)) }
}

type AdyenItem = {
  readonly amount?: { readonly value?: unknown; readonly currency?: unknown }
  readonly additionalData?: { readonly hmacSignature?: unknown }
} & Readonly<Record<string, unknown>>

const signAdyen = (_: SignatureForm, { key, body }: ToSign): SpecialSignature => {
  const given = parseObject(body)
  const { notificationItems: list } = given
  if (!Array.isArray(list))
    throw new DoorwardError('usage', 'the payload has no notificationItems, which Adyen signs', {
      hint: 'doorward webhook send PATH --sample adyen:AUTHORISATION',
    })
  const notificationItems = (list as readonly { NotificationRequestItem?: AdyenItem }[]).map(
    ({ NotificationRequestItem: item = {} }) => {
      const { value, currency } = item.amount ?? {}
      const { originalReference = '', merchantAccountCode } = item
      // The sample has no signature yet: a second one by the same reference would be a duplicate.
      const isSample = item.additionalData?.hmacSignature === ''
      const pspReference = isSample
        ? randomBytes(8).toString('hex').toUpperCase()
        : item['pspReference']
      const { merchantReference = '', eventCode, success } = item
      const left = [pspReference, originalReference, merchantAccountCode, merchantReference]
      const signed = [...left, value, currency, eventCode, success].map(String).join(':')
      const hmacSignature = hmac('sha256', key, signed).digest('base64')
      const additionalData = { ...item.additionalData, hmacSignature }
      return { NotificationRequestItem: { ...item, pspReference, additionalData } }
    },
  )
  return { body: Buffer.from(JSON.stringify({ ...given, notificationItems })) }
}

const parseObject = (body: Buffer): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch {
    // Whatever it is, the sender would have sent it within an object.
  }
  return {}
}

/** What a key pair makes of the signed bytes, for the header of the form. */
export const signByTestPair = (
  form: SignatureForm,
  body: Buffer,
  values: SignedValues,
): { readonly digest: Buffer; readonly testKey: string } => {
  const { keyAlgorithm = 'ed25519' } = form
  const pair = pairs[keyAlgorithm]()
  const hash = keyAlgorithm === 'ed25519' ? null : 'sha256'
  const digest = sign(hash, toSignedBytes(form, body, values), pair.privateKey)
  return { digest, testKey: toPem(pair) }
}

const signers: {
  readonly [Check in SignatureForm['check']]?: (
    form: SignatureForm,
    given: ToSign,
  ) => SpecialSignature
} = {
  oidc: signByIssuer,
  google: signByIssuer,
  plaid: signPlaid,
  paypal: signPaypal,
  sns: signSns,
  mailgun: signMailgun,
  twilio: signTwilio,
  'client-state': signGraph,
  adyen: signAdyen,
}

/** Signs in the way of the sender; undefined for one with an HMAC, a key pair or a token. */
export const signSpecial = (form: SignatureForm, given: ToSign): SpecialSignature | undefined =>
  signers[form.check]?.(form, given)
