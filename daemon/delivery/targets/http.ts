import { createHash, createHmac } from 'node:crypto'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import {
  parseBodyTemplate,
  parseUrlTemplate,
  toBody,
  toUrl,
} from '../../../shared/targets/http-templates.ts'
import {
  parseHeaderValue,
  parseSecretUrl,
  parseSigningKey,
} from '../../../shared/targets/secrets.ts'
import { DeliveryError } from '../delivery-error.ts'
import { chatText } from '../format/mentions.ts'
import { connectTarget, toStatusError, requestTarget } from '../request.ts'
import type { Message, Sender } from '../sender.ts'
import { readVariable } from '../token.ts'

/** Standard Webhooks. */
const signingSecret = 'whsec_ and the base64 of 24 to 64 bytes'

type Entry = TargetSettings['http'][string]

/** In messages: results name the target. */
const server = 'the server'

/**
 * A POST signed by Standard Webhooks (specification, "Signature scheme"). All attempts have the same
 * `webhook-id`, by which the receiver recognises a repeat. Of its URL an event fills segments of the path at most.
 */
export const createHttp = (entries: TargetSettings['http'], env: NodeJS.ProcessEnv): Sender => ({
  isIdempotent: (address) => entries[address]?.sign ?? true,
  send: async (message, attempt) => {
    const { address } = message
    const entry = getEntry(entries, address)
    const { body_template: template, secret_env: secret, sign: isSigned } = entry
    const body = toRequestBody(template, message)
    const response = await requestTarget(getUrl(entry, env, message.values?.segments ?? []), {
      target: server,
      headers: {
        ...buildHeaders(entry.headers ?? {}, env),
        'content-type': 'application/json',
        ...(isSigned &&
          sign(message, body, readVariable(secret ?? '', env, signingSecret, parseSigningKey))),
      },
      body,
      attempt,
    })
    const hint = isSigned ? hints[response.status] : unsignedHints[response.status]
    const failure = toStatusError(server, response, { hint })
    if (failure) throw failure
    return undefined
  },
  preview: (message) => toRequestBody(getEntry(entries, message.address).body_template, message),
  // Only connects: any request would be a message.
  check: async (address, asking) => {
    await connectTarget(getUrl(getEntry(entries, address), env), `http:${address}`, asking)
    return undefined
  },
})

const getEntry = (entries: TargetSettings['http'], address: string): Entry => {
  const entry = Object.hasOwn(entries, address) ? entries[address] : undefined
  if (entry) return entry
  throw new DeliveryError('permanent', `there is no target http:${address}`, {
    code: 'target-invalid',
  })
}

const hints: Readonly<Record<number, string>> = {
  401: 'the receiver rejects the signature: both sides need the same secret',
  403: 'the receiver rejects the signature: both sides need the same secret',
  404: 'check url in its entry in gateway.yaml',
  410: 'the receiver was removed: remove the target from deliver_to',
}

const renewed = 'create the incoming webhook again, and put its new URL into url or url_env'

const unsignedHints: Readonly<Record<number, string>> = {
  400: 'the receiver does not take this body: check body_template with its documents',
  401: 'check its URL, and its headers in gateway.yaml',
  403: renewed,
  404: renewed,
  410: renewed,
}

const getUrl = (
  { url, url_env: variable = '' }: Entry,
  env: NodeJS.ProcessEnv,
  segments?: readonly string[],
): URL => {
  if (url === undefined) return readVariable(variable, env, 'an https URL', parseSecretUrl)
  const filled = toUrl(parseUrlTemplate(url), segments)
  if (filled) return filled
  // The entry has changed since the event came.
  throw new DeliveryError('permanent', 'the URL needs values that were not read of this event', {
    code: 'target-invalid',
    hint: 'doorward events retry ID --again reads them',
  })
}

const toRequestBody = (
  template: string | undefined,
  message: Omit<Message, 'part' | 'isLast'>,
): string => (template === undefined ? defaultBody(message) : templateBody(template, message))

/** For a chat rather than a program: without control sequences, and with mentions that notify no one. */
const templateBody = (
  template: string,
  { reply, values }: Omit<Message, 'part' | 'isLast'>,
): string => {
  const { eventId, webhook, receivedAt, text } = reply
  const own = {
    result: chatText(text),
    event_id: eventId,
    webhook: { path: webhook },
    delivery: { received_at: receivedAt.toISOString() },
  }
  const ofEvent = (values?.body ?? []).map(
    ([names, value]) => [names, typeof value === 'string' ? chatText(value) : value] as const,
  )
  const body = toBody(parseBodyTemplate(template), own, ofEvent)
  if (body !== undefined) return body
  throw new DeliveryError('permanent', 'body_template does not make JSON of this answer', {
    hint: 'write {{ result | json }}, without quotes around it',
  })
}

const defaultBody = ({ reply }: Omit<Message, 'part' | 'isLast'>): string => {
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

/** The owner's own headers; `env:NAME` is the value of a variable. */
const buildHeaders = (
  headers: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (!value.startsWith('env:')) return [name, value]
      const variable = value.slice('env:'.length)
      return [name, readVariable(variable, env, `a value for the header ${name}`, parseHeaderValue)]
    }),
  )
