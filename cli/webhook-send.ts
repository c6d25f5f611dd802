import type { EventRecord } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { readEnvironment } from '../shared/config/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import { loadConfig } from '../shared/config/load.ts'
import type { Webhook } from '../shared/config/webhook.ts'
import { plainLine } from '../shared/text.ts'
import { type Delivery, ownDelivery, sampleDelivery, signedHeaders } from './as-sender.ts'
import type { Context } from './context.ts'
import { type PostedWebhook, postWebhook } from './post-webhook.ts'
import { withNextDaemon } from './reach-daemon.ts'
import { readInput } from './read-input.ts'
import { readSample, sampleNames } from './samples.ts'
import type { Terminal } from './terminal.ts'
import { waitForEvent } from './wait-for-event.ts'
import { webhookAt } from './webhook-at.ts'

export type SendOptions = {
  readonly sample?: string | true
  readonly event?: string
  readonly wait?: boolean
}

/**
 * Sends a payload as the sender of the webhook would: signed with the definition's own secret. With
 * `--wait` the agent's answer is printed. Throws what the daemon refused it with.
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
  const env = await readEnvironment(home)
  const webhook = webhookAt(path, (await loadConfig(home, env)).webhooks)
  const make = await deliveryMaker(file, options, webhook)
  const sign = (nowMs: number) => {
    const { body, ...delivery } = make(nowMs)
    return { body, headers: signedHeaders(webhook, env, { body, ...delivery }, nowMs) }
  }
  // What cannot be signed starts no daemon.
  sign(Date.now())
  await withNextDaemon(context, async (client) => {
    const url = new URL(webhook.urlPaths[0] ?? webhook.path, client.daemon.url)
    // Here, as a daemon may have been waited for longer than a signature is good.
    const { body, headers } = sign(Date.now())
    const post = () => postWebhook(url, headers, body, webhook.enabled ? undefined : switchedOff)
    if (!options.wait) {
      const posted = await post()
      printPosted(posted, terminal)
      if (posted.status !== 'accepted') await sayWhy(client, posted.id, terminal)
      return
    }
    await waitForEvent(client, terminal, async () => {
      const posted = await post()
      terminal.say(`${posted.id} ${posted.status}`)
      return posted.id
    })
  })
}

const switchedOff =
  'enabled: false in webhooks.yaml switches this webhook off: doorward config edit webhooks'

const listSamples = async (terminal: Terminal): Promise<void> => {
  const samples = await sampleNames()
  if (terminal.json) terminal.printJson({ samples })
  else for (const name of samples) terminal.print(name)
}

/** What makes the delivery of a time of sending. */
const deliveryMaker = async (
  file: string | undefined,
  { sample: sampleName, event }: SendOptions,
  webhook: Webhook,
): Promise<(nowMs: number) => Delivery> => {
  const { scheme } = webhook
  if (typeof sampleName === 'string') {
    if (file !== undefined)
      throw new DoorwardError('usage', 'a file and --sample exclude each other')
    const delivery = sampleDelivery(await readSample(sampleName))
    return () => delivery
  }
  if (file === undefined)
    throw new DoorwardError('usage', 'there is no payload to send', {
      hint: 'name a file, - for standard input, or --sample github:pull_request.opened',
    })
  if (event !== undefined && scheme.eventHeader === undefined)
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
  if (detail !== undefined) terminal.say(plainLine(detail))
}

const printPosted = (posted: PostedWebhook, terminal: Terminal): void => {
  if (terminal.json) terminal.printJson(posted)
  else terminal.print(plainLine(`${posted.id} ${posted.status}`))
}
