import { createHash, createHmac } from 'node:crypto'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { parseHeaderValue, parseSigningKey } from '../../../shared/config/target-secrets.ts'
import { DeliveryError } from '../delivery-error.ts'
import { failureOfAnswer, requestTarget } from '../request.ts'
import type { Message, Sender } from '../sender.ts'

/**
 * A POST that is signed by Standard Webhooks (specification, "Signature scheme"): `webhook-id` stays the
 * same over all tries, so that the receiver knows a repeat. Nothing of an event reaches the URL.
 */
export const createHttp = (entries: TargetSettings['http'], env: NodeJS.ProcessEnv): Sender => ({
  knowsRepeats: true,
  send: async (message, attempt) => {
    const { address } = message
    const target = `http:${address}`
    const entry = Object.hasOwn(entries, address) ? entries[address] : undefined
    if (!entry)
      throw new DeliveryError('refused', `there is no target ${target}`, {
        code: 'target-invalid',
      })
    const body = toBody(message)
    const answer = await requestTarget(new URL(entry.url), {
      target,
      headers: {
        ...buildHeaders(entry.headers ?? {}, env),
        'content-type': 'application/json',
        ...sign(message, body, getSigningKey(entry.secret_env, env)),
      },
      body,
      attempt,
    })
    const failure = failureOfAnswer(target, answer, { hint: hints[answer.status] })
    if (failure) throw failure
    return undefined
  },
})

const hints: Readonly<Record<number, string>> = {
  401: 'the receiver does not take the signature: both need the same secret',
  403: 'the receiver does not take the signature: both need the same secret',
  404: 'check url in its entry in gateway.yaml',
  410: 'the receiver wants no more: take the target out of deliver_to',
}

/** The receiver's own words for what an agent answered. */
const toBody = ({ answered }: Message): string => {
  const { eventId, webhook, receivedAt, text: result } = answered
  const timestamp = receivedAt.toISOString()
  return JSON.stringify({
    type: 'agent.answered',
    timestamp,
    data: { eventId, webhook, receivedAt: timestamp, result },
  })
}

const sign = ({ answered }: Message, body: string, key: Buffer): Record<string, string> => {
  // Another answer to the same event, after a retry, is another message.
  const digest = createHash('sha256').update(answered.text).digest('hex').slice(0, 16)
  const id = `${answered.eventId}_${digest}`
  const timestamp = String(Math.floor(Date.now() / 1000))
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${mac}`,
  }
}

const getSigningKey = (name: string, env: NodeJS.ProcessEnv): Buffer => {
  const [text] = listSecrets([name], env)
  const key = text === undefined ? undefined : parseSigningKey(text)
  if (key) return key
  throw new DeliveryError(
    'refused',
    `${name} ${text === undefined ? 'is unset' : 'does not hold a secret of Standard Webhooks'}`,
    { hint: `set ${name} in .env of the home folder to whsec_ and the base64 of 24 to 64 bytes` },
  )
}

/** The owner's own headers; `env:NAME` is the value of a variable. */
const buildHeaders = (
  headers: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (!value.startsWith('env:')) return [name, value]
      const variable = value.slice('env:'.length)
      const [text] = listSecrets([variable], env)
      const good = text === undefined ? undefined : parseHeaderValue(text)
      if (good !== undefined) return [name, good]
      throw new DeliveryError(
        'refused',
        `${variable}, the value of the header ${name}, is unset or no header value`,
        { hint: `set ${variable} in .env: doorward config edit env` },
      )
    }),
  )
