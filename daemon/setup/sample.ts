import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { eventHeader, testKeyHeader } from '../../shared/api/api.ts'
import type { SentSample } from '../../shared/api/setup.ts'
import type { Webhook } from '../../shared/config/webhook.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Sample, readSample } from '../../shared/samples/samples.ts'
import {
  type Delivery,
  ownDelivery,
  type SignedDelivery,
  sampleDelivery,
  signDelivery,
} from '../../shared/signing/signing.ts'
import { describeFeed } from '../../shared/sources/feed.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { LiveConfig } from '../config/live-config.ts'
import type { TestKeys } from '../webhook/senders/test-keys.ts'

export type SampleParts = {
  readonly live: LiveConfig
  readonly testKeys: TestKeys
  /** The address of this daemon. */
  readonly url: () => string
}

/** The name of a built-in payload, or a payload of JSON. */
type Asked = {
  readonly path: string
  readonly sample?: string | undefined
  readonly payload?: string | undefined
  readonly repository?: string | undefined
}

/**
 * Sends a built-in payload, or one's own, to a webhook as its sender would, signed with the secret of the webhook.
 * Throws `request-invalid`, `webhook-not-found`, `unavailable` without a secret, and where the delivery is refused.
 */
export const sendSample = async (
  { live, testKeys, url }: SampleParts,
  asked: Asked,
): Promise<SentSample> => {
  const { path } = asked
  const { config, env } = live.current()
  const webhook = config.webhooks.find((one) => one.path === path && one.enabled)
  if (!webhook)
    throw new DoorwardError('webhook-not-found', 'no webhook is served at this path', {
      hint: 'doorward webhook list',
    })
  if (webhook.feed)
    throw new DoorwardError(
      'usage',
      `nothing can be sent to ${path}: each of its events is ${describeFeed(webhook.feed.kind)}`,
    )
  const now = Date.now()
  const signer = { env, publicUrl: config.gateway.server.public_url }
  const signed = signDelivery(webhook, signer, toDelivery(asked, webhook, now), now)
  const to = new URL(webhook.urlPaths[0] ?? path, url())
  to.search = signed.search
  const key = signed.testKey
  const test = key !== undefined && { [testKeyHeader]: testKeys.add(webhook.path, key) }
  const response = await post(to, { ...signed, headers: { ...signed.headers, ...test } })
  return readAnswer(response, await text(response))
}

const toDelivery = (
  { sample, payload, repository }: Asked,
  webhook: Webhook,
  now: number,
): Delivery => {
  if ((sample === undefined) === (payload === undefined))
    throw new DoorwardError('request-invalid', 'either sample or payload is needed')
  if (sample !== undefined)
    return sampleDelivery(ofRepository(readSample(sample), repository), webhook, now)
  if (!isJson(payload ?? ''))
    throw new DoorwardError('request-invalid', 'the payload is not JSON', {
      hint: 'for example: {"text": "a sample"}',
    })
  return ownDelivery(webhook, Buffer.from(payload ?? ''), now)
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The event is in the JSON of a 202. Slack and others read the body, so there it is in a header. */
const readAnswer = ({ statusCode = 0, headers }: IncomingMessage, said: string): SentSample => {
  const [, id, status] = /^(\S+) (\S+)$/.exec(String(headers[eventHeader] ?? '')) ?? []
  if (id !== undefined && status !== undefined) return { id, status }
  const answer = parseAnswer(said)
  if (statusCode === 202 && answer.id !== undefined)
    return { id: answer.id, status: answer.status ?? '' }
  const why = answer.detail === undefined ? '' : `: ${toPlainLine(answer.detail)}`
  throw new DoorwardError('unavailable', `the sample was answered ${statusCode}${why}`, {
    hint: 'the events say why',
  })
}

type Answer = { readonly id?: string; readonly status?: string; readonly detail?: string }

/** A 401 has no body. */
const parseAnswer = (said: string): Answer => {
  try {
    return JSON.parse(said) as Answer
  } catch {
    return {}
  }
}

/** A rule that is limited to a repository passes over that of the sample. */
const ofRepository = (sample: Sample, repository: string | undefined): Sample => {
  if (repository === undefined || sample.contentType !== 'application/json') return sample
  const payload = JSON.parse(sample.body.toString('utf8')) as { repository?: object }
  const named = { ...payload.repository, full_name: repository }
  return {
    ...sample,
    body: Buffer.from(JSON.stringify({ ...payload, repository: named }, null, 2)),
  }
}

const sampleMs = 30_000

const post = async (
  to: URL,
  { headers, body }: Pick<SignedDelivery, 'headers' | 'body'>,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const length = { 'content-length': String(body.length) }
    const sent = request(to, { method: 'POST', headers: { ...headers, ...length } }, resolve)
    sent.setTimeout(sampleMs, () => sent.destroy(new Error('no answer in time')))
    sent.on('error', reject)
    sent.end(body)
  })
