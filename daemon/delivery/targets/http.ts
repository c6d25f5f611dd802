import { createHash, createHmac } from 'node:crypto'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { parseHeaderValue, parseSigningKey } from '../../../shared/config/target-secrets.ts'
import { DeliveryError } from '../delivery-error.ts'
import { toStatusError, requestTarget } from '../request.ts'
import type { Message, Sender } from '../sender.ts'

/**
 * A POST signed by Standard Webhooks (specification, "Signature scheme"). All attempts have the same
 * `webhook-id`, by which the receiver recognises a repeat. Nothing of an event reaches the URL.
 */
export const createHttp = (entries: TargetSettings['http'], env: NodeJS.ProcessEnv): Sender => ({
  isIdempotent: true,
  send: async (message, attempt) => {
    const { address } = message
    const target = `http:${address}`
    const entry = Object.hasOwn(entries, address) ? entries[address] : undefined
    if (!entry)
      throw new DeliveryError('permanent', `there is no target ${target}`, {
        code: 'target-invalid',
      })
    const body = toBody(message)
    const response = await requestTarget(new URL(entry.url), {
      target,
      headers: {
        ...buildHeaders(entry.headers ?? {}, env),
        'content-type': 'application/json',
        ...sign(message, body, getSigningKey(entry.secret_env, env)),
      },
      body,
      attempt,
    })
    const failure = toStatusError(target, response, { hint: hints[response.status] })
    if (failure) throw failure
    return undefined
  },
})

const hints: Readonly<Record<number, string>> = {
  401: 'the receiver rejects the signature: both sides need the same secret',
  403: 'the receiver rejects the signature: both sides need the same secret',
  404: 'check url in its entry in gateway.yaml',
  410: 'the receiver is gone: remove the target from deliver_to',
}

const toBody = ({ reply }: Message): string => {
  const { eventId, webhook, receivedAt, text: result } = reply
  const timestamp = receivedAt.toISOString()
  return JSON.stringify({
    type: 'agent.answered',
    timestamp,
    data: { eventId, webhook, receivedAt: timestamp, result },
  })
}

const sign = ({ reply }: Message, body: string, key: Buffer): Record<string, string> => {
  // Another answer to the same event, after a retry, is another message.
  const digest = createHash('sha256').update(reply.text).digest('hex').slice(0, 16)
  const id = `${reply.eventId}_${digest}`
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
    'permanent',
    `${name} ${text === undefined ? 'is unset' : 'is not a secret of Standard Webhooks'}`,
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
      const valid = text === undefined ? undefined : parseHeaderValue(text)
      if (valid !== undefined) return [name, valid]
      throw new DeliveryError(
        'permanent',
        `${variable}, the value of the header ${name}, is unset or not a valid header value`,
        { hint: `set ${variable} in .env: doorward config edit env` },
      )
    }),
  )
