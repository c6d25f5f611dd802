import type { IncomingMessage } from 'node:http'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { type CompiledWebhook, headersNamed } from './compiled-webhook.ts'
import { type Accepted, type ContactParts, toContact } from './delivery.ts'
import { acceptHandshake } from './senders/accept-handshake.ts'
import { findUnsignedHandshake, handshakeMethods } from './senders/handshakes-unsigned.ts'

/*
 * Requests for the address of a webhook that are no deliveries: other methods than POST, and addresses that
 * are nearly right. Any client can send them, so only some become events.
 */

const windowMs = 10_000

/** The keys are from the configuration, never from a request: there are few. */
export const createOccasion = (
  everyMs = windowMs,
  clock: () => number = () => performance.now(),
): ContactParts['isRare'] => {
  const last = new Map<string, number>()
  return (key) => {
    const now = clock()
    if (now - (last.get(key) ?? Number.NEGATIVE_INFINITY) < everyMs) return false
    last.set(key, now)
    return true
  }
}

/** Answers a request that is no POST: the handshake of its sender, or 405. */
export const acceptVisit = async (
  request: IncomingMessage,
  webhook: CompiledWebhook,
  parts: ContactParts,
): Promise<Accepted> => {
  const { method = '', url = '' } = request
  const headers = headersNamed(request.rawHeaders, webhook.headerNames)
  try {
    const asked = { method, url, headers, bytes: Buffer.alloc(0) }
    const handshake = findUnsignedHandshake(webhook, asked)
    if (handshake) return await acceptHandshake(webhook, handshake, parts)
    throw new DoorwardError('method-not-allowed', 'a webhook allows POST only', {
      localDetail: `a ${toMethod(method)} request came, and deliveries come by POST${guessSender(request)}`,
    })
  } catch (error) {
    if (error instanceof DoorwardError) noteRefusal(webhook, error, parts)
    throw error
  }
}

export const allowedMethods = ({ scheme }: CompiledWebhook): string =>
  [...new Set(['POST', ...handshakeMethods(scheme)])].join(', ')

/** Notes that a request came to nearly this address. */
export const noteNearMiss = (webhook: CompiledWebhook, sent: string, parts: ContactParts): void => {
  const given = toPlainLine(sent).slice(0, 200)
  const localDetail = `a request came to ${given}: the address of this webhook is ${webhook.urlPaths.at(-1)}, letter for letter`
  noteRefusal(webhook, new DoorwardError('webhook-not-found', 'not found', { localDetail }), parts)
}

const noteRefusal = (
  webhook: CompiledWebhook,
  { code, localDetail, message }: DoorwardError,
  { events, refusals, isRare }: ContactParts,
): void => {
  if (!isRare(`${webhook.path} ${code}`)) return
  const why = { state: 'rejected', stage: 'receive', code, detail: localDetail ?? message } as const
  const { id } = events.add(new Date(), { ...why, ...toContact(webhook) })
  refusals.note({ event: id, webhook: webhook.path, ...why })
}

const toMethod = (method: string): string => (/^[A-Z]{1,20}$/.test(method) ? method : 'strange')

/** Which sender tests an address in this way. */
const guessSender = ({ method, url = '', headers }: IncomingMessage): string => {
  const [, query = ''] = /\?(.*)$/s.exec(url) ?? []
  const parameters = new URLSearchParams(query)
  const sender =
    method === 'GET' && parameters.has('hub.challenge')
      ? 'meta'
      : method === 'GET' && parameters.has('challenge')
        ? 'dropbox'
        : method === 'OPTIONS' && headers['webhook-request-origin'] !== undefined
          ? 'cloudevents'
          : method === 'HEAD'
            ? 'trello'
            : undefined
  return sender === undefined
    ? ''
    : `; ${sender} tests an address so: if it is the sender, set signature_scheme: ${sender}`
}
