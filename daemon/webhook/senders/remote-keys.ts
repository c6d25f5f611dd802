import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { DoorwardError } from '../../../shared/errors.ts'
import { openRequest } from '../../../shared/network/outgoing.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import { createByteCollector } from '../../util/byte-budget.ts'
import { invalid } from '../signatures/header.ts'
import { BoundedMap } from '../../util/collections.ts'

/*
 * Public keys that a sender publishes on its own host. A key is fetched before verification, which then needs
 * no other machine. Who sends nonsense can cause a few requests to that host a minute, and no others.
 */

/** Gets a text by https. Throws whatever went wrong. */
export type FetchText = (url: URL) => Promise<string>

const timeoutMs = 5000
const maxBytes = 256 * 1024

export const fetchText: FetchText = async (url) =>
  withTimeLimit(timeoutMs, new AbortController().signal, async (signal) => {
    const response = await openRequest(url, { method: 'GET', headers: { accept: '*/*' }, signal })
    const { statusCode = 0 } = response
    if (statusCode !== 200) {
      response.destroy()
      throw new Error(`${url.host} answered ${statusCode}`)
    }
    const collected = createByteCollector()
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (collected.size() + chunk.length > maxBytes) throw new RangeError('too large')
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
  /** The times of the last fetches from Google, and of those from Amazon. */
  readonly #fetches = { google: [] as number[], 'aws-sns': [] as number[] }

  constructor(fetch: FetchText = fetchText, clock: () => number = Date.now) {
    this.#fetch = fetch
    this.#clock = clock
  }

  /** Throws `signature-invalid` where Google has no key of this id, and `unavailable` when none can be fetched. */
  async findOfGoogle(keyId: unknown): Promise<KeyObject> {
    const key = await this.#key(googleKeys, typeof keyId === 'string' ? keyId : '', parseJwks)
    if (key) return key
    throw invalid('the JWT names a key that Google does not have')
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
    const key = await this.#key(url.href, 'certificate', parseCertificate)
    if (key) return key
    throw invalid('the certificate of the message is not valid now')
  }

  async #key(
    url: string,
    name: string,
    parse: (text: string, nowMs: number) => ReadonlyMap<string, KeyObject>,
  ): Promise<KeyObject | undefined> {
    const now = this.#clock()
    const kept = this.#kept.get(url)
    const known = kept && now - kept.at < keptMs ? kept.keys.get(name) : undefined
    // A key that is not known may be new; one that was looked for just now is not.
    if (known || (kept && now - kept.at < windowMs)) return known
    try {
      return (await this.#load(url, parse)).keys.get(name)
    } catch (error) {
      const stale = kept && now - kept.at < staleMs ? kept.keys.get(name) : undefined
      if (stale) return stale
      const { host } = new URL(url)
      throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
        localDetail: `the public key of the sender cannot be fetched from ${host}: the sender should try again`,
        cause: error,
      })
    }
  }

  async #load(
    url: string,
    parse: (text: string, nowMs: number) => ReadonlyMap<string, KeyObject>,
  ): Promise<Kept> {
    const pending = this.#pending.get(url)
    if (pending) return pending
    const now = this.#clock()
    const source = url === googleKeys ? 'google' : 'aws-sns'
    const recent = this.#fetches[source].filter((at) => now - at < windowMs)
    if (recent.length >= maxFetches) throw new RangeError('too many keys in this minute')
    this.#fetches[source] = [...recent, now]
    const loading = this.#fetch(new URL(url)).then((text) => {
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

const parseJwks = (text: string): ReadonlyMap<string, KeyObject> => {
  const { keys } = JSON.parse(text) as { readonly keys: readonly JsonWebKey[] }
  return new Map(
    keys
      .filter(({ kty, kid }) => kty === 'RSA' && typeof kid === 'string')
      .map((key) => [String(key['kid']), createPublicKey({ key, format: 'jwk' })]),
  )
}

const parseCertificate = (text: string, nowMs: number): ReadonlyMap<string, KeyObject> => {
  const certificate = new X509Certificate(text)
  const isValid =
    Date.parse(certificate.validFrom) <= nowMs && nowMs <= Date.parse(certificate.validTo)
  return new Map(isValid ? [['certificate', certificate.publicKey]] : [])
}
