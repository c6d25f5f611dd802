import type { IncomingMessage } from 'node:http'
import { addSecret } from '../../../shared/home/init-home.ts'
import { reservedSegments } from '../../../shared/config/webhook.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { LiveConfig } from '../../config/live-config.ts'
import type { EventStore } from '../../events/event-store.ts'
import { type CompiledWebhook, headersNamed } from '../compiled-webhook.ts'
import {
  findUnsignedHandshake,
  handshakeMethod,
  type UnsignedHandshake,
} from './handshakes-unsigned.ts'
import type { Accepted } from '../delivery.ts'
import type { Handshake } from './handshakes.ts'
import { type FetchText, parseSnsUrl } from './remote-keys.ts'
import type { RejectionLog } from '../rejection-log.ts'

/*
 * Requests for the address of a webhook that are no deliveries: handshakes without a signature, other methods
 * than POST, and addresses that are nearly right. Any client can send them, so only some become events.
 */

export type ContactParts = {
  readonly events: EventStore
  readonly refusals: RejectionLog
  /** True once in ten seconds for each key. */
  readonly isRare: (key: string) => boolean
  /** Writes a secret into `.env`, where it is unset, and uses it. */
  readonly keepSecret: (name: string, value: string) => Promise<void>
  readonly fetchText: FetchText
}

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

export const createKeepSecret =
  (home: Home, live: Pick<LiveConfig, 'reload'>): ContactParts['keepSecret'] =>
  async (name, value) => {
    if (!(await withConfigLock(home, async () => addSecret(home, name, value))))
      throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
        localDetail: `${name} has a value in .env by now, and is not replaced`,
      })
    await live.reload()
  }

/** Answers a handshake, after keeping what the owner agreed to keep. */
export const acceptHandshake = async (
  webhook: CompiledWebhook,
  { secret, token, status, detail, reply }: UnsignedHandshake,
  { events, isRare, keepSecret }: ContactParts,
): Promise<Accepted> => {
  const [name] = webhook.secretNames
  if (secret !== undefined && name !== undefined) await keepSecret(name, secret)
  // Those with a secret or a token come only until there is one.
  const isShown = secret !== undefined || token !== undefined || isRare(`${webhook.path} ${status}`)
  if (!isShown) return { status, reply }
  const { id } = events.add(new Date(), { state: 'filtered', detail, ...toKnown(webhook) })
  if (token !== undefined) events.update(id, {}, { result: token })
  return { id, status, reply }
}

/** What the event of a signed handshake says. */
export const describeHandshake = (
  { detail, confirm }: Handshake,
  { confirm: hasConsent }: CompiledWebhook,
): string =>
  confirm !== undefined && !hasConsent
    ? `${detail}: set confirm: true, and request the confirmation again in the console of SNS`
    : detail

/** Calls the address that confirms a subscription; the event says how that went. */
export const confirmSubscription = (
  id: string | undefined,
  address: string,
  { events, fetchText }: Pick<ContactParts, 'events' | 'fetchText'>,
): void => {
  const url = parseSnsUrl(address)
  const note = (detail: string) => id !== undefined && events.update(id, { detail })
  // Verification has refused any other address.
  if (!url) return
  void fetchText(url).then(
    () => note('the subscription of Amazon SNS is confirmed'),
    () =>
      note(
        `the subscription of Amazon SNS is not confirmed, as ${url.host} did not answer as it should: request the confirmation again in the console of SNS`,
      ),
  )
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
  [...new Set(['POST', handshakeMethod(scheme.handshake) ?? 'POST'])].join(', ')

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
  const { id } = events.add(new Date(), { ...why, ...toKnown(webhook) })
  refusals.note({ event: id, webhook: webhook.path, ...why })
}

const toKnown = ({ path, rules }: CompiledWebhook) => ({
  webhook: path,
  agent: rules[0].agentName,
  size: 0,
})

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

/** Paths that differ in case or slashes only are the same here. */
const simplify = (path: string): string =>
  path
    .toLowerCase()
    .replaceAll(/\/{2,}/g, '/')
    .replace(/(?!^)\/$/, '')

const isOfApi = (path: string): boolean => reservedSegments.includes(path.split('/')[1] ?? '')

/** Finds the webhook whose address differs only in case or slashes. */
export const nearestByPath = (
  byPath: ReadonlyMap<string, CompiledWebhook>,
): ((path: string) => CompiledWebhook | undefined) => {
  const simple = [...byPath].map(([path, webhook]) => [simplify(path), webhook] as const)
  const bySimple = new Map(simple.filter(([path]) => !isOfApi(path)))
  return (path) => bySimple.get(simplify(path))
}
