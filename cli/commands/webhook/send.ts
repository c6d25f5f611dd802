import { type IncomingMessage, request as httpRequest } from 'node:http'
import { buffer } from 'node:stream/consumers'
import {
  eventHeader,
  type EventRecord,
  type ProblemDocument,
  testKeyHeader,
} from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { initHome } from '../../../shared/home/init-home.ts'
import { readSample, sampleNames } from '../../../shared/samples/samples.ts'
import type { Schedule } from '../../../shared/schedules/schedule.ts'
import { describeFeed } from '../../../shared/sources/feed.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'
import { webhookAt } from '../../daemon-client/webhooks.ts'
import { readInput } from '../../terminal/input.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { waitForEvent } from '../events/wait.ts'
import {
  type Delivery,
  ownDelivery,
  sampleDelivery,
  signDelivery,
} from '../../../shared/signing/signing.ts'

export type SendOptions = {
  readonly sample?: string | true
  readonly event?: string
  readonly wait?: boolean
}

/**
 * Sends a payload as the webhook's sender would, signed with the secret of its definition. With
 * `--wait` it prints the agent's answer. Throws the daemon's error when the delivery is rejected.
 */
export const sendWebhook = async (
  context: Context,
  [path, file]: (string | undefined)[],
  options: SendOptions,
): Promise<void> => {
  const { home, terminal } = context
  if (options.sample === true) return listSamples(terminal)
  if (path === undefined)
    throw new DoorwardError('usage', 'the path of a webhook is missing', {
      hint: 'doorward webhook list shows them',
    })
  await initHome(home)
  const env = await readEnvironment(home)
  const { webhooks, schedules, gateway } = await loadConfig(home, env)
  refuseSchedule(path, schedules)
  const webhook = webhookAt(path, webhooks)
  if (webhook.feed) throw toNoReceiver(webhook.path, webhook.feed.kind)
  const signer = { env, publicUrl: gateway.server.public_url }
  const make = await deliveryMaker(file, options, webhook)
  const sign = (nowMs: number) => signDelivery(webhook, signer, make(nowMs), nowMs)
  // Fail before a daemon is started.
  sign(Date.now())
  await withNextDaemon(context, async (client) => {
    const url = new URL(webhook.urlPaths[0] ?? webhook.path, client.daemon.url)
    // Sign again: waiting for the daemon may have taken longer than a signature is valid.
    const { body, headers: signed, search, testKey } = sign(Date.now())
    const headers =
      testKey === undefined
        ? signed
        : { ...signed, [testKeyHeader]: await giveTestKey(client, webhook, testKey, terminal) }
    url.search = search
    const post = () => postWebhook(url, headers, body, webhook.enabled ? undefined : switchedOff)
    if (!options.wait) {
      const posted = await post()
      printPosted(posted, terminal)
      if (posted.status !== 'accepted') await sayWhy(client, posted.id, terminal)
      return
    }
    let others: readonly PostedEvent[] = []
    await waitForEvent(client, terminal, async () => {
      const posted = await post()
      for (const { id, status, rule = '' } of listEvents(posted))
        terminal.say(toPlainLine(`${id} ${status} ${rule}`.trimEnd()))
      others = listEvents(posted).slice(1)
      return posted.id
    })
    for (const { id, rule = '' } of others) {
      terminal.say(toPlainLine(`${id} ${rule}`))
      await waitForEvent(client, terminal, async () => Promise.resolve(id))
    }
  })
}

const refuseSchedule = (path: string, schedules: readonly Schedule[]): void => {
  const found = schedules.find(({ name, webhook }) => [name, webhook.path].includes(path))
  if (found)
    throw new DoorwardError('usage', `"${path}" is a schedule: nothing can be sent to it`, {
      hint: `doorward schedule run ${found.name}`,
    })
}

const toNoReceiver = (path: string, kind: string): DoorwardError =>
  new DoorwardError(
    'usage',
    `nothing can be sent to ${path}: each of its events is ${describeFeed(kind)}`,
    {
      hint: `doorward webhook explain ${path} FILE shows what an event with that payload would do`,
    },
  )

/** Has the daemon verify the next delivery by this key, and says so. */
const giveTestKey = async (
  client: Client,
  { path, urlPaths, scheme, enabled }: Webhook,
  key: string,
  terminal: Terminal,
): Promise<string> => {
  if (!enabled)
    throw new DoorwardError('webhook-not-found', `${path} is switched off`, { hint: switchedOff })
  const asked = { path: urlPaths[0] ?? path, key }
  const { id } = await client.post<{ readonly id: string }>('/webhooks/test-key', asked)
  terminal.say(
    `only ${scheme.title} has its private key: this delivery is signed with a key made for it, which the daemon accepts once`,
  )
  return id
}

const switchedOff =
  'enabled: false in webhooks.yaml switches this webhook off: doorward config edit webhooks'

const listSamples = async (terminal: Terminal): Promise<void> => {
  const samples = sampleNames()
  if (terminal.json) terminal.printJson({ samples })
  else for (const name of samples) terminal.print(name)
}

/** Returns a function that makes the delivery for a given time of sending. */
const deliveryMaker = async (
  file: string | undefined,
  { sample: sampleName, event }: SendOptions,
  webhook: Webhook,
): Promise<(nowMs: number) => Delivery> => {
  const { scheme } = webhook
  if (typeof sampleName === 'string') {
    if (file !== undefined)
      throw new DoorwardError('usage', 'a file and --sample exclude each other')
    const sample = readSample(sampleName)
    return (nowMs) => sampleDelivery(sample, webhook, nowMs)
  }
  if (file === undefined)
    throw new DoorwardError('usage', 'there is no payload to send', {
      hint: 'name a file, - for standard input, or --sample github:pull_request.opened',
    })
  if (event !== undefined && scheme.event?.header === undefined)
    throw new DoorwardError(
      'usage',
      `--event does not go with the scheme ${scheme.name}, which has no header for it`,
    )
  const payload = await readInput(file)
  return (nowMs) => ownDelivery(webhook, payload, nowMs, event)
}

/** What the event says of it: which part of a filter did not match, or which delivery it repeats. */
const sayWhy = async (client: Client, id: string, terminal: Terminal): Promise<void> => {
  const { detail } = await client.get<EventRecord>(`/events/${encodeURIComponent(id)}`)
  if (detail !== undefined) terminal.say(toPlainLine(detail))
}

const printPosted = (posted: PostedWebhook, terminal: Terminal): void => {
  if (terminal.json) terminal.printJson(posted)
  else
    for (const { id, status, rule = '' } of listEvents(posted))
      terminal.print(toPlainLine(`${id} ${status} ${rule}`.trimEnd()))
}

const listEvents = (posted: PostedWebhook): readonly PostedEvent[] => posted.events ?? [posted]

/** The daemon's answer to a webhook that it takes. */
type PostedWebhook = {
  readonly id: string
  readonly status: string
  /** All events, where several rules match. */
  readonly events?: readonly PostedEvent[]
}

type PostedEvent = { readonly id: string; readonly status: string; readonly rule?: string }

/**
 * Posts a webhook as it stands, without the local API's token. Throws what it is refused with;
 * `hintIfUnknown` is what to do where there is no webhook.
 */
export const postWebhook = async (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  hintIfUnknown = 'doorward webhook list shows what is served; a broken configuration is said by: doorward status',
): Promise<PostedWebhook> => {
  const response = await send(url, { ...headers, 'content-length': String(body.length) }, body)
  const text = (await buffer(response)).toString('utf8')
  const status = response.statusCode ?? 0
  if (status >= 200 && status < 300) return parsePosted(response, text)
  throw refusal(status, text, status === 404 ? hintIfUnknown : hints.get(status))
}

/** Slack reads the body, so there the id and status are in a header. */
const parsePosted = ({ headers }: IncomingMessage, text: string): PostedWebhook => {
  const [, id, state] = /^(\S+) (\S+)$/.exec(String(headers[eventHeader] ?? '')) ?? []
  if (id !== undefined && state !== undefined) return { id, status: state }
  return JSON.parse(text) as PostedWebhook
}

const send = async (
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(url, { method: 'POST', headers }, resolve)
    request.setTimeout(30_000, () => request.destroy(new Error('no answer in time')))
    request.on('error', (error) =>
      reject(
        new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} does not answer`, {
          cause: error,
          hint: 'doorward daemon status',
        }),
      ),
    )
    request.end(body)
  })

const inEvents = 'the reason is in: doorward events --limit 1'

const hints = new Map([
  [400, 'fix the payload, then send it again'],
  [401, inEvents],
  [413, inEvents],
  [429, 'rate_limit of the webhook in webhooks.yaml sets how many are accepted'],
  [503, 'doorward status shows what is running and waiting'],
])

const refusal = (status: number, text: string, hint = 'doorward daemon logs'): DoorwardError => {
  let problem: Partial<ProblemDocument> = {}
  try {
    problem = JSON.parse(text) as Partial<ProblemDocument>
  } catch {
    // The daemon always answers JSON; another program need not.
  }
  return new DoorwardError(
    (problem.code ?? 'internal') as ErrorCode,
    `the webhook was refused with ${status}: ${problem.detail ?? 'no reason given'}`,
    { hint: problem.hint ?? hint },
  )
}
