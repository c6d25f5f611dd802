import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { DoorwardError } from '../../../shared/errors.ts'
import { isLoopbackUrl } from '../../../shared/net.ts'
import { openRequest } from '../../../shared/network/outgoing.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import { createByteCollector } from '../../util/byte-budget.ts'
import { invalid } from '../signatures/header.ts'
import { BoundedMap } from '../../util/collections.ts'

/*
 * Public keys that a sender publishes on its own host. A key is fetched before verification, which then needs
 * no other machine. Who sends nonsense can cause a few requests to that host a minute, and no others.
 */

/** Gets a text by https, or posts this JSON for it. Throws whatever went wrong. */
export type FetchText = (url: URL, json?: string) => Promise<string>

const timeoutMs = 5000
const maxBytes = 256 * 1024

export const fetchText: FetchText = async (url, json) =>
  withTimeLimit(timeoutMs, new AbortController().signal, async (signal) => {
    const response = await openRequest(url, {
      method: json === undefined ? 'GET' : 'POST',
      headers: json === undefined ? { accept: '*/*' } : { 'content-type': 'application/json' },
      body: json,
      signal,
    })
    const { statusCode = 0 } = response
    if (statusCode !== 200) {
      response.destroy()
      throw new Error(`${url.host} answered ${statusCode}`)
    }
    const collected = createByteCollector()
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (collected.size() + chunk.length > maxBytes)
        throw new RangeError('the answer is too large')
      collected.add(chunk)
    }
    signal.throwIfAborted()
    return collected.bytes().toString('utf8')
  })

/** How keys are cached, in milliseconds. */
const keptMs = 6 * 60 * 60_000
const staleMs = 24 * 60 * 60_000
const windowMs = 60_000
const maxFetches = 6
/** Amazon has some fifty certificates, one or two for each region. */
const maxKept = 100

type Kept = { readonly keys: ReadonlyMap<string, KeyObject>; readonly at: number }

const googleKeys = 'https://www.googleapis.com/oauth2/v3/certs'

/** The host of Amazon SNS in any region, and in China. */
const snsHost = /^sns\.[a-z]{2}(-[a-z]+)+-\d\.amazonaws\.com(\.cn)?$/

/** The URL of a certificate or a confirmation, if it is one of Amazon SNS itself. */
export const parseSnsUrl = (text: unknown): URL | undefined => {
  if (typeof text !== 'string' || text.length > 2048 || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const isPlain = url.protocol === 'https:' && url.port === '' && url.username + url.password === ''
  return isPlain && snsHost.test(url.hostname) ? url : undefined
}

export class RemoteKeys {
  readonly #fetch: FetchText
  readonly #clock: () => number
  readonly #kept = new BoundedMap<string, Kept>(maxKept)
  readonly #pending = new Map<string, Promise<Kept>>()
  /** The times of the last fetches from Google, from Amazon, and from each issuer of the configuration. */
  readonly #fetches = new Map<string, readonly number[]>()

  constructor(fetch: FetchText = fetchText, clock: () => number = Date.now) {
    this.#fetch = fetch
    this.#clock = clock
  }

  /** Throws `signature-invalid` where Google has no key of this id, and `unavailable` when none can be fetched. */
  async findOfGoogle(keyId: unknown): Promise<KeyObject> {
    const key = await this.#key({ url: googleKeys, parse: parseJwks }, toKeyName(keyId))
    if (key) return key
    throw invalid('the JWT names a key that Google does not have')
  }

  /** The same of the issuer that the owner names, whose discovery says where its keys are. */
  async findOfIssuer(issuer: string, keyId: unknown): Promise<KeyObject> {
    const url = `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`
    const load = async () => this.#fetch(toKeysUrl(await this.#fetch(new URL(url)), issuer))
    const key = await this.#key({ url, parse: parseJwks, load }, toKeyName(keyId))
    if (key) return key
    throw invalid(`the JWT names a key that ${new URL(issuer).host} does not have`)
  }

  /**
   * The key of the certificate that a message of SNS names. Throws `signature-invalid` where it names none, or
   * one of another host, and `unavailable` when it cannot be fetched.
   */
  async findOfSns(bytes: Buffer): Promise<KeyObject> {
    const url = parseSnsUrl(parseSnsMessage(bytes)['SigningCertURL'])
    // One text for each: those with `#1`, `#2` and so on would push out what is kept.
    if (!url || !/^\/[\w-]+\.pem$/.test(url.pathname) || url.href !== url.origin + url.pathname)
      throw invalid('the address of the certificate is not one of Amazon SNS')
    const source = { url: url.href, parse: parseCertificate, limit: 'aws-sns' }
    const key = await this.#key(source, 'certificate')
    if (key) return key
    throw invalid('the certificate of the message is not valid now')
  }

  /** The same for the certificate that a header of PayPal names. */
  async findOfPaypal(address: string | undefined): Promise<KeyObject> {
    if (address === undefined || !paypalCertificate.test(address))
      throw invalid('the address of the certificate is not one of PayPal')
    const source = { url: address, parse: parseCertificate, limit: 'paypal' }
    const key = await this.#key(source, 'certificate')
    if (key) return key
    throw invalid('the certificate of the delivery is not valid now')
  }

  /** Plaid gives a key to its customer only. The body names which of its two hosts has it. */
  async findOfPlaid(
    keyId: unknown,
    bytes: Buffer,
    { account, secret }: { readonly account: string; readonly secret: string },
  ): Promise<KeyObject> {
    if (typeof keyId !== 'string' || !/^[\w-]{8,64}$/.test(keyId))
      throw invalid('the JWT names no key of Plaid')
    const host = isSandbox(bytes) ? 'sandbox.plaid.com' : 'production.plaid.com'
    const url = `https://${host}/webhook_verification_key/get`
    const json = JSON.stringify({ client_id: account, secret, key_id: keyId })
    const source = {
      url: `${url}#${keyId}`,
      parse: parsePlaidKey,
      limit: 'plaid',
      load: async () => this.#fetch(new URL(url), json),
    }
    const key = await this.#key(source, keyId)
    if (key) return key
    throw invalid('the key of the JWT has expired at Plaid, or is none for signatures')
  }

  async #key(source: KeySource, name: string): Promise<KeyObject | undefined> {
    const { url } = source
    const now = this.#clock()
    const kept = this.#kept.get(url)
    const known = kept && now - kept.at < keptMs ? kept.keys.get(name) : undefined
    // A key that is not known may be new; one that was looked for just now is not.
    if (known || (kept && now - kept.at < windowMs)) return known
    try {
      return (await this.#load(source)).keys.get(name)
    } catch (error) {
      const stale = kept && now - kept.at < staleMs ? kept.keys.get(name) : undefined
      if (stale) return stale
      const { host } = new URL(url)
      throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
        localDetail: `the public key of the sender cannot be fetched from ${host}${error instanceof RangeError ? `, as ${error.message}` : ''}: the sender should try again`,
        cause: error,
      })
    }
  }

  async #load({ url, parse, limit = url, load }: KeySource): Promise<Kept> {
    const pending = this.#pending.get(url)
    if (pending) return pending
    const now = this.#clock()
    const recent = (this.#fetches.get(limit) ?? []).filter((at) => now - at < windowMs)
    if (recent.length >= maxFetches)
      throw new RangeError(`it was asked ${maxFetches} times in this minute`)
    this.#fetches.set(limit, [...recent, now])
    const loading = (load ? load() : this.#fetch(new URL(url))).then((text) => {
      const kept = { keys: parse(text, now), at: now }
      this.#kept.set(url, kept)
      return kept
    })
    this.#pending.set(url, loading)
    try {
      return await loading
    } finally {
      this.#pending.delete(url)
    }
  }
}

/** Where keys are: one text for each URL, of which `limit` counts the fetches. */
type KeySource = {
  readonly url: string
  readonly parse: (text: string, nowMs: number) => ReadonlyMap<string, KeyObject>
  readonly limit?: string
  readonly load?: () => Promise<string>
}

const toKeyName = (keyId: unknown): string => (typeof keyId === 'string' ? keyId : '')

/**
 * The address of the keys in a discovery document (OpenID Connect Discovery 1.0 section 4). It is that of the
 * issuer itself (section 4.3), and no plain http unless the issuer is on this machine.
 */
const toKeysUrl = (text: string, issuer: string): URL => {
  const { issuer: named, jwks_uri: uri } = parseObject(text)
  if (named !== issuer) throw new RangeError('its discovery is that of another issuer')
  const isUsable =
    typeof uri === 'string' &&
    URL.canParse(uri) &&
    (uri.startsWith('https:') ||
      (uri.startsWith('http:') && isLoopbackUrl(issuer) && isLoopbackUrl(uri)))
  if (!isUsable) throw new RangeError('its discovery has no https address of keys')
  return new URL(uri)
}

const parseObject = (text: string): Readonly<Record<string, unknown>> => {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {}
}

const maxMessageBytes = 1024 * 1024

/** The fields of a message of Amazon SNS, which are signed one by one. Throws `signature-invalid`. */
export const parseSnsMessage = (bytes: Buffer): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(bytes.length > maxMessageBytes ? '' : bytes.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch {
    // Not JSON, or larger than any message of SNS (256 KB).
  }
  throw invalid('the body is no message of Amazon SNS (raw message delivery is not signed)')
}

const paypalCertificate =
  /^https:\/\/api(-m)?(\.sandbox)?\.paypal\.com\/v1\/notifications\/certs\/[\w-]{1,100}$/

/** Nothing proves the body yet. */
const isSandbox = (bytes: Buffer): boolean => {
  try {
    const text = bytes.length > maxMessageBytes ? '' : bytes.toString('utf8')
    return parseObject(text)['environment'] === 'sandbox'
  } catch {
    return false
  }
}

const parsePlaidKey = (text: string): ReadonlyMap<string, KeyObject> => {
  const { key } = parseObject(text)
  const { expired_at: expiredAt = null } = (key ?? {}) as { readonly expired_at?: unknown }
  return new Map(expiredAt === null ? toKeyEntry(key as JsonWebKey | null) : [])
}

const parseJwks = (text: string): ReadonlyMap<string, KeyObject> => {
  const { keys } = parseObject(text)
  const found = Array.isArray(keys) ? keys.slice(0, maxKeys) : []
  return new Map(found.flatMap((key) => toKeyEntry(key as JsonWebKey | null)))
}

const maxKeys = 100

/** None for what is no public key for signatures: an issuer may have others, too. */
const toKeyEntry = (key: JsonWebKey | null): [string, KeyObject][] => {
  const { kty, kid = '', use = 'sig' } = key ?? {}
  if (!key || typeof kid !== 'string' || use !== 'sig' || kty === 'oct') return []
  try {
    return [[kid, createPublicKey({ key, format: 'jwk' })]]
  } catch {
    return []
  }
}

const parseCertificate = (text: string, nowMs: number): ReadonlyMap<string, KeyObject> => {
  const certificate = new X509Certificate(text)
  const isValid =
    Date.parse(certificate.validFrom) <= nowMs && nowMs <= Date.parse(certificate.validTo)
  return new Map(isValid ? [['certificate', certificate.publicKey]] : [])
}
