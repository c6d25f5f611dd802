import type { Explanation } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type ReadyTarget, expandTargets } from './expand-targets.ts'
import { holds } from './filter.ts'
import { isPing } from './handshake.ts'
import { markedPrompt } from './marked-prompt.ts'
import { type Payload, parse } from './parse.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { valueAt } from './value-at.ts'
import { type SignatureHeaders, type VerifiedBody, verify } from './verify.ts'

/**
 * The story of a delivery told without living it: the stages of `pipeline.ts` up to the queue, each
 * asked what it says, and nothing run, sent, noted or remembered. Throws what keeps a body from being
 * read: `media-type-unsupported`, `payload-not-json`, `body-too-large`.
 */
export const explain = (
  webhook: ReadyWebhook,
  headers: SignatureHeaders,
  bytes: Buffer,
): Explanation => {
  const { signature, body } = checkSignature(webhook, headers, bytes)
  const type = headers['content-type']?.[0] ?? 'application/json'
  const payload = parse(body, type, headers['content-encoding']?.[0])
  const filter = webhook.filter.map((condition) => ({
    path: condition.text,
    expected: [...condition.expected],
    actual: jsonOf(valueAt(payload, condition.path)),
    matches: holds(payload, condition),
  }))
  const handshake = isPing(headers) ? 'ping' : undefined
  const { prompt, substituted } = markedPrompt(webhook, payload)
  return {
    webhook: webhook.path,
    signature,
    matches: handshake === undefined && filter.every(({ matches }) => matches),
    ...(handshake === undefined ? {} : { handshake }),
    filter,
    prompt,
    substituted,
    agent: agentOf(webhook),
    targets: targetsOf(webhook, payload, prompt),
  }
}

type Checked = { readonly signature: Explanation['signature']; readonly body: VerifiedBody }

const checkSignature = (
  { keys, signature }: ReadyWebhook,
  headers: SignatureHeaders,
  bytes: Buffer,
): Checked => {
  const scheme = 'hmac'
  // The owner asks: what no sender has signed is looked at as if no signature were asked for.
  const unsigned = () => verify(bytes, {}, signature, 'none')
  if (keys === 'none') return { signature: { scheme, result: 'not-required' }, body: unsigned() }
  if (headers[signature.header] === undefined) {
    const detail = `there is no ${signature.header} header: a delivery without it is refused`
    return { signature: { scheme, result: 'not-given', detail }, body: unsigned() }
  }
  try {
    const body = verify(bytes, headers, signature, keys)
    return { signature: { scheme, result: 'valid' }, body }
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const detail = error.localDetail ?? error.message
    return { signature: { scheme, result: 'invalid', detail }, body: unsigned() }
  }
}

const jsonOf = (value: unknown): Explanation['filter'][number]['actual'] =>
  value === undefined ? null : (value as Explanation['filter'][number]['actual'])

const agentOf = ({ agentName, agent }: ReadyWebhook): Explanation['agent'] => ({
  name: agentName,
  kind: agent.kind,
  ...('command' in agent && { argv: [...agent.command] }),
})

const targetsOf = (
  { targets }: ReadyWebhook,
  payload: Payload,
  text: string,
): Explanation['targets'] =>
  expandTargets(targets, payload).map((target) =>
    target.kind === 'invalid'
      ? { target: target.text, parts: [], detail: target.error.message }
      : { target: target.text, parts: partsOf(target, text) },
  )

/** The messages that an answer makes for a target. */
const partsOf = (_target: ReadyTarget, text: string): string[] => [text]
