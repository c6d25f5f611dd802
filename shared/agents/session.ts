import { z } from 'zod'
import { parseSessionKey, type Template } from '../templates.ts'
import { cliKinds } from './clis.ts'
import { optionalDuration, sessionSize } from '../config/values.ts'

/*
 * `session` of a rule: its events with one key go on in one conversation of the agent program.
 */

export type SessionSettings = {
  readonly key: Template
  /** From the last use. */
  readonly ttlMs: number
  /** A longer transcript is not kept. */
  readonly limitBytes: number
}

export const sessionFields = {
  session: z
    .string()
    .regex(/\{\{/, 'has no placeholder, so all events would share one conversation')
    .optional()
    .describe(
      'What events have in common that go on in one conversation of their agent program (claude, codex, gemini or opencode), with placeholders: {{subject.key}} is what the event is about, such as acme/shop#12. Default: each event starts a new one.',
    ),
  session_ttl: optionalDuration('How long after its last event a conversation ends. Default 7d.'),
  session_limit: sessionSize
    .optional()
    .describe(
      'A conversation with a longer transcript is not kept, and the next event starts a new one. Default 1mb.',
    ),
}

/** Whether the program of an agent has conversations that can be carried. */
export const hasSessions = (kind: string): boolean =>
  kind !== 'llm' && (cliKinds as readonly string[]).includes(kind)

const usualTtlMs = 7 * 86_400_000
const usualLimitBytes = 1024 ** 2

type SessionEntry = {
  readonly session?: string | undefined
  readonly session_ttl?: number | undefined
  readonly session_limit?: number | undefined
}

/** The session of a rule of checked fields. */
export const toSession = (
  { session_ttl: ttl, session_limit: limit }: SessionEntry,
  key: Template | undefined,
): SessionSettings | undefined =>
  key && { key, ttlMs: ttl ?? usualTtlMs, limitBytes: limit ?? usualLimitBytes }

/** Throws `config-invalid`. */
export const parseSession = (entry: SessionEntry): Template | undefined =>
  entry.session === undefined ? undefined : parseSessionKey(entry.session)

/** Reports settings of a session where there is none. */
export const checkSession = (
  fields: SessionEntry,
  report: (field: 'session_ttl' | 'session_limit', reason: string, hint?: string) => void,
): void => {
  if (fields.session !== undefined) return
  for (const field of ['session_ttl', 'session_limit'] as const)
    if (fields[field] !== undefined)
      report(field, 'there is no session', "remove it, or write session: '{{subject.key}}'")
}
