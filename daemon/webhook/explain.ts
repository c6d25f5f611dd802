import type { Explanation } from '../../shared/api.ts'
import { beginsAsInPrompt } from '../../shared/templates.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { prefixHint } from '../../shared/config/warnings.ts'
import type { FilterCondition } from '../../shared/config/webhook.ts'
import { argvOf } from '../agents/presets.ts'
import type { LoopGuard } from '../deliver/loop-guard.ts'
import { partsFor } from '../deliver/text/parts.ts'
import { checkBodyTimestamp } from './body-timestamp.ts'
import { createExamine } from './doctor.ts'
import type { ReadyTarget } from '../deliver/ready-target.ts'
import { expandTargets } from './expand-targets.ts'
import { holds } from './filter.ts'
import { handshakeOf } from './handshake.ts'
import { markedPrompt } from './marked-prompt.ts'
import { type Payload, parse } from './parse.ts'
import type { ReadyWebhook } from './ready-webhook.ts'
import { bodyHeadersOf } from './scheme-headers.ts'
import { valueAt } from '../value-at.ts'
import { type SignatureHeaders, type VerifiedBody, verify } from './verify.ts'

/** What is to be explained, as if it came at `nowMs`. */
export type LookedAt = {
  readonly headers: SignatureHeaders
  readonly bytes: Buffer
  readonly nowMs: number
  readonly loopGuard: Pick<LoopGuard, 'ownDetail'>
  /** Throws what keeps a file from being written to. */
  readonly tryFile: (path: string) => Promise<void>
}

/**
 * The story of a delivery told without living it: the stages of `pipeline.ts` up to the queue, each
 * asked what it says, and nothing run, sent, noted or remembered. Throws what keeps a body from being
 * read: `media-type-unsupported`, `payload-not-json`, `body-too-large`.
 */
export const explain = async (
  webhook: ReadyWebhook,
  { headers, bytes, nowMs, loopGuard, tryFile }: LookedAt,
): Promise<Explanation> => {
  const { scheme } = webhook
  const checked = checkSignature(webhook, headers, bytes, nowMs)
  const { 'content-type': type = 'application/json', ...others } = bodyHeadersOf(headers)
  const payload = parse(checked.body, { 'content-type': type, ...others }, scheme.name === 'slack')
  const filter = webhook.filter.map((condition) => ({
    path: condition.text,
    expected: [...condition.expected],
    actual: jsonOf(valueAt(payload, condition.path)),
    matches: holds(payload, condition),
    ...hintOf(payload, condition),
  }))
  const handshake = handshakeOf(scheme, headers, payload)?.status
  const ownComment = handshake === undefined && loopGuard.ownDetail(payload) !== undefined
  const { prompt, substituted } = markedPrompt(webhook, payload)
  return {
    webhook: webhook.path,
    signature: checkTime(checked.signature, payload, webhook, nowMs),
    matches: handshake === undefined && !ownComment && filter.every(({ matches }) => matches),
    ...(handshake === undefined ? {} : { handshake }),
    ...(ownComment && { ownComment }),
    filter,
    prompt,
    substituted,
    agent: agentOf(webhook),
    targets: await targetsOf(expandTargets(webhook.targets, payload), prompt, tryFile),
  }
}

type Checked = { readonly signature: Explanation['signature']; readonly body: VerifiedBody }

const checkSignature = (
  webhook: ReadyWebhook,
  headers: SignatureHeaders,
  bytes: Buffer,
  nowMs: number,
): Checked => {
  const { scheme, verifier } = webhook
  const found = (result: Explanation['signature']['result'], detail?: string) => ({
    scheme: scheme.name,
    result,
    ...(detail === undefined ? {} : { detail }),
  })
  // The owner asks: what no sender has signed is looked at as if no signature were asked for.
  const unsigned = () => verify(bytes, {}, 'none', nowMs)
  const form = typeof verifier === 'string' ? undefined : verifier.at(-1)
  if (form && !scheme.forms.some(({ header }) => headers[header] !== undefined)) {
    const detail = `there is no ${form.header} header: a delivery without it is refused`
    return { signature: found('not-given', detail), body: unsigned() }
  }
  try {
    const body = verify(bytes, headers, verifier, nowMs)
    return { signature: found(verifier === 'none' ? 'not-required' : 'valid'), body }
  } catch (error) {
    // With time of its own: a flood of refused deliveries does not keep the owner from an answer.
    const detail = refusalOf(createExamine()(error, bytes, headers, webhook, nowMs))
    return { signature: found('invalid', detail), body: unsigned() }
  }
}

/** The last part of verification, for what is valid so far. */
const checkTime = (
  signature: Explanation['signature'],
  payload: Payload,
  { scheme }: ReadyWebhook,
  nowMs: number,
): Explanation['signature'] => {
  if (signature.result !== 'valid') return signature
  try {
    checkBodyTimestamp(payload, scheme, nowMs)
    return signature
  } catch (error) {
    return { ...signature, result: 'invalid', detail: refusalOf(error) }
  }
}

const refusalOf = (error: unknown): string => {
  if (!(error instanceof DoorwardError)) throw error
  return error.localDetail ?? error.message
}

const jsonOf = (value: unknown): Explanation['filter'][number]['actual'] =>
  value === undefined ? null : (value as Explanation['filter'][number]['actual'])

/** For a path that is there once it is written without the `event.` of a prompt. */
const hintOf = (
  payload: Payload,
  { path, text }: FilterCondition,
): Pick<Explanation['filter'][number], 'hint'> => {
  const isMeant =
    beginsAsInPrompt(path) &&
    valueAt(payload, path) === undefined &&
    valueAt(payload, path.slice(1)) !== undefined
  return isMeant ? { hint: prefixHint(text) } : {}
}

const agentOf = ({ agentName, agent }: ReadyWebhook): Explanation['agent'] => ({
  name: agentName,
  kind: agent.kind,
  ...argvIn(agent),
})

const argvIn = (agent: ReadyWebhook['agent']): Pick<Explanation['agent'], 'argv'> => {
  switch (agent.kind) {
    case 'command':
      return { argv: [...agent.command] }
    case 'claude':
    case 'codex':
    case 'gemini':
    case 'opencode':
    case 'llm':
      return { argv: argvOf(agent) }
    case 'echo':
    case 'openai':
    case 'http':
      return {}
  }
}

const targetsOf = async (
  targets: readonly ReadyTarget[],
  text: string,
  tryFile: LookedAt['tryFile'],
): Promise<Explanation['targets']> =>
  Promise.all(
    targets.map(async (target) => {
      try {
        if (target.kind === 'invalid') throw target.error
        if (target.kind === 'file') await tryFile(target.path)
        return { target: target.text, parts: partsFor(target, text) }
      } catch (error) {
        return { target: target.text, parts: [], detail: refusalOf(error) }
      }
    }),
  )
