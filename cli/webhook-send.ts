import { randomUUID } from 'node:crypto'
import { readEnvironment, secretsOf } from '../shared/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import { loadConfig } from '../shared/load-config.ts'
import type { Webhook } from '../shared/webhook-definition.ts'
import { nearest } from '../shared/nearest.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { interruptSignal } from './interrupt.ts'
import { type PostedWebhook, postWebhook } from './post-webhook.ts'
import { printFinished } from './print-finished.ts'
import { withDaemon } from './reach-daemon.ts'
import { readInput } from './read-input.ts'
import { type Sample, readSample, sampleNames } from './samples.ts'
import { signPayload } from './sign-payload.ts'
import type { Terminal } from './terminal.ts'
import { untilFinished } from './until-finished.ts'

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
  const nowMs = Date.now()
  const payload = await payloadOf(file, options, webhook, nowMs)
  const headers = { ...payload.headers, ...signatureOf(webhook, env, payload, nowMs) }
  await withDaemon(context, async (client) => {
    const url = new URL(webhook.urlPaths[0] ?? webhook.path, client.daemon.url)
    if (!options.wait) {
      printPosted(await postWebhook(url, headers, payload.body), terminal)
      return
    }
    const send = async () => {
      const posted = await postWebhook(url, headers, payload.body)
      terminal.say(`${posted.id} ${posted.status}`)
      return posted.id
    }
    printFinished(await untilFinished(client, send, interruptSignal()), terminal)
  })
}

const listSamples = async (terminal: Terminal): Promise<void> => {
  const samples = await sampleNames()
  if (terminal.json) terminal.printJson({ samples })
  else for (const name of samples) terminal.print(name)
}

const webhookAt = (path: string, webhooks: readonly Webhook[]): Webhook => {
  const webhook = webhooks.find((known) => known.path === path || known.urlPaths.includes(path))
  if (webhook) return webhook
  const paths = webhooks.map((known) => known.path)
  throw new DoorwardError('webhook-not-found', `no webhook is defined at "${path}"`, {
    hint:
      nearest(path, paths) ??
      (paths.length > 0 ? `one of ${paths.join(', ')}` : 'doorward config edit webhooks'),
  })
}

type Payload = {
  readonly body: Buffer
  readonly deliveryId: string
  readonly headers: Readonly<Record<string, string>>
}

const payloadOf = async (
  file: string | undefined,
  { sample: sampleName, event }: SendOptions,
  webhook: Webhook,
  nowMs: number,
): Promise<Payload> => {
  const { scheme } = webhook
  if (typeof sampleName === 'string') {
    if (file !== undefined)
      throw new DoorwardError('usage', 'a file and --sample exclude each other')
    return samplePayload(await readSample(sampleName))
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
  const given = await readInput(file)
  const deliveryId = randomUUID()
  return {
    body: stamped(given, scheme.bodyTimestamp, nowMs),
    deliveryId,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'doorward',
      ...(scheme.eventHeader !== undefined &&
        event !== undefined && { [scheme.eventHeader]: event }),
      ...idHeaderOf(webhook, deliveryId),
    },
  }
}

/** Where the sender does not sign the id, it is in a header of its own. */
const idHeaderOf = ({ scheme }: Webhook, deliveryId: string): Record<string, string> => {
  const [name, second] = scheme.deliveryId.headers
  const isSigned = scheme.forms.every(({ idHeader }) => idHeader !== undefined)
  // A sender that is not known names it in a header that the owner has named, or not at all.
  const isAnyOf = scheme.name === 'hmac' && second !== undefined
  return name === undefined || isAnyOf || isSigned ? {} : { [name]: deliveryId }
}

/** A body with the time of sending in it, where the sender puts one there (Linear). */
const stamped = (body: Buffer, field: string | undefined, nowMs: number): Buffer => {
  if (field === undefined) return body
  try {
    const payload: unknown = JSON.parse(body.toString('utf8'))
    if (typeof payload === 'object' && payload !== null && !Array.isArray(payload))
      return Buffer.from(JSON.stringify({ ...payload, [field]: nowMs }))
  } catch {
    // What is no JSON is sent as it is, and the daemon says so.
  }
  return body
}

const samplePayload = ({ sender, event, contentType, body }: Sample): Payload => {
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

const signatureOf = (
  { path, scheme, secretNames }: Webhook,
  env: NodeJS.ProcessEnv,
  { body, deliveryId }: Payload,
  nowMs: number,
): Record<string, string> => {
  if (secretNames.length === 0) return {}
  const secrets = secretsOf(secretNames, env)
  const names = secretNames.join(', ')
  if (secrets.length === 0)
    throw new DoorwardError('unavailable', `cannot sign for ${path}: ${names} is unset or empty`, {
      hint: 'set it in .env of the home folder, or in the environment',
    })
  for (const secret of secrets) {
    const signature = signPayload(scheme, secret, body, { deliveryId, nowMs })
    if (signature) return signature
  }
  throw new DoorwardError(
    'unavailable',
    `cannot sign for ${path}: ${names} holds no secret of the scheme ${scheme.name}`,
    { hint: 'doorward config check says what is wrong with it' },
  )
}

const printPosted = (posted: PostedWebhook, terminal: Terminal): void => {
  if (terminal.json) terminal.printJson(posted)
  else terminal.print(plainLine(`${posted.id} ${posted.status}`))
}
