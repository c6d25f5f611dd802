import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { testKeyHeader } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Sample, readSample } from '../../shared/samples/samples.ts'
import { type SignedDelivery, sampleDelivery, signDelivery } from '../../shared/signing/signing.ts'
import type { LiveConfig } from '../config/live-config.ts'
import type { TestKeys } from '../webhook/senders/test-keys.ts'

export type SampleParts = {
  readonly live: LiveConfig
  readonly testKeys: TestKeys
  /** The address of this daemon. */
  readonly url: () => string
}

type Asked = {
  readonly path: string
  readonly sample: string
  readonly repository?: string | undefined
}

/**
 * Sends a built-in payload to a webhook as its sender would, signed with the secret of the webhook. Throws
 * `webhook-not-found`, `unavailable` without a secret, and where the delivery is refused.
 */
export const sendSample = async (
  { live, testKeys, url }: SampleParts,
  { path, sample, repository }: Asked,
): Promise<{ readonly id: string }> => {
  const { config, env } = live.current()
  const webhook = config.webhooks.find((one) => one.path === path && one.enabled)
  if (!webhook)
    throw new DoorwardError('webhook-not-found', 'no webhook is served at this path', {
      hint: 'doorward webhook list',
    })
  const now = Date.now()
  const signer = { env, publicUrl: config.gateway.server.public_url }
  const payload = ofRepository(readSample(sample), repository)
  const signed = signDelivery(webhook, signer, sampleDelivery(payload, webhook, now), now)
  const to = new URL(webhook.urlPaths[0] ?? path, url())
  to.search = signed.search
  const key = signed.testKey
  const test = key !== undefined && { [testKeyHeader]: testKeys.add(webhook.path, key) }
  const response = await post(to, { ...signed, headers: { ...signed.headers, ...test } })
  const said = await text(response)
  if (response.statusCode === 202) return JSON.parse(said) as { id: string }
  throw new DoorwardError('unavailable', `the sample was answered ${response.statusCode}`, {
    hint: 'the events say why',
  })
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
