import { hash } from 'node:crypto'
import type { Agent } from '../../shared/config/schema.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { CompiledRule } from '../webhook/compiled-webhook.ts'
import { expandKey } from '../webhook/rules/groups.ts'
import type { EventScope } from '../webhook/read-delivery.ts'

/** The conversation that an event goes on with. */
export type SessionRequest = {
  /** A hash of webhook, rule and key. */
  readonly name: string
  readonly webhook: string
  readonly rule: string | undefined
  /** Text of the sender. */
  readonly key: string
  /** A hash of the template of the prompt. */
  readonly template: string
  readonly ttlMs: number
  readonly limitBytes: number
}

const longestKey = 200

/** The session of an event, or the placeholder of its key that is empty in it. */
export const toSessionRequest = (
  { path, name: rule, session, prompt }: Pick<CompiledRule, 'path' | 'name' | 'session' | 'prompt'>,
  scope: EventScope,
  subject: { readonly key: string } | undefined,
): SessionRequest | string | undefined => {
  if (!session) return undefined
  const texts = expandKey(session.key, { ...scope, subject })
  if (typeof texts === 'string') return texts
  const { ttlMs, limitBytes } = session
  return {
    // The parts of a key are hashed one by one: values of an event cannot imitate another key.
    name: hash('sha256', JSON.stringify([path, rule ?? '', ...texts])),
    webhook: path,
    rule,
    key: toPlainLine(texts.join('')).slice(0, longestKey),
    template: hash('sha256', prompt.source),
    ttlMs,
    limitBytes,
  }
}

/** What a conversation was begun with: with other settings the next event starts a new one. */
export const toFingerprint = (
  { template }: Pick<SessionRequest, 'template'>,
  agentName: string,
  { timeout: _timeout, concurrency: _concurrency, ...agent }: Agent,
): string => hash('sha256', JSON.stringify([template, agentName, agent]))
