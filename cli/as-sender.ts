import { randomUUID } from 'node:crypto'
import { secretsOf } from '../shared/config/environment.ts'
import { DoorwardError } from '../shared/errors.ts'
import { unsetHint } from '../shared/config/variables.ts'
import type { Webhook } from '../shared/config/webhook.ts'
import type { Sample } from './samples.ts'
import { signPayload } from './sign-payload.ts'
import { stampBody } from './stamp-body.ts'

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
  const secrets = secretsOf(secretNames, env)
  const names = secretNames.join(', ')
  if (secrets.length === 0)
    throw new DoorwardError('unavailable', `cannot sign for ${path}: ${names} is unset or empty`, {
      hint: unsetHint(secretNames, env),
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
