import { addSecret } from '../../../shared/home/init-home.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import type { CompiledWebhook } from '../compiled-webhook.ts'
import { type Accepted, type ContactParts, toContact } from '../delivery.ts'
import type { UnsignedHandshake } from './handshakes-unsigned.ts'
import type { Handshake } from './handshakes.ts'
import { parseSnsUrl } from './remote-keys.ts'

/*
 * Answers to handshakes. Any client can send one without a signature, so only some become events.
 */

export const createKeepSecret =
  (home: Home, reload: () => Promise<unknown>): ContactParts['keepSecret'] =>
  async (name, value) => {
    if (!(await withConfigLock(home, async () => addSecret(home, name, value))))
      throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
        localDetail: `${name} has a value in .env by now, and is not replaced`,
      })
    await reload()
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
  const { id } = events.add(new Date(), { state: 'filtered', detail, ...toContact(webhook) })
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
