import { z } from 'zod'
import { usageSchema } from './usage.ts'

/* Conversations that go on from one event to the next, in the local API. */

/** The conversation of an event: `anew` where an earlier one could not go on, with the reason. */
export const eventSessionSchema = z.strictObject({
  key: z.string(),
  /** Counts from 1. */
  turn: z.int(),
  state: z.enum(['new', 'resumed', 'anew']),
  why: z.string().optional(),
})
export type EventSession = z.infer<typeof eventSessionSchema>

const sessionSchema = z.strictObject({
  /** The name of its file, and in addresses: a hash of rule and key. */
  id: z.string(),
  webhook: z.string(),
  rule: z.string().optional(),
  key: z.string(),
  agent: z.string(),
  /** The program whose conversation it is. */
  program: z.string(),
  turns: z.int(),
  /** Bytes of its transcript; 0 where the next event starts a new one. */
  bytes: z.int(),
  startedAt: z.iso.datetime(),
  usedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  isSealed: z.boolean(),
  /** Whether an event of it runs. */
  isRunning: z.boolean(),
  /** Why the next event starts a new one. */
  why: z.string().optional(),
  /** The last event of it. */
  event: z.string(),
  /** What its program says of the whole conversation, where it says it. */
  totals: usageSchema.optional(),
  /** The code that its last event saw. */
  code: z.strictObject({ repository: z.string(), commit: z.string() }).optional(),
})
export type SessionSummary = z.infer<typeof sessionSchema>

/** `GET /sessions`: the last used first. `GET /sessions/:id`, and `DELETE /sessions/:id`: one of them. */
export const sessionListSchema = z.strictObject({ sessions: z.array(sessionSchema) })
export type SessionList = z.infer<typeof sessionListSchema>

/** Response of `POST /sessions/:id/open`. */
export const openedSessionSchema = z.strictObject({
  session: sessionSchema,
  /** The program's own name of the conversation. */
  conversation: z.string(),
  /** Base64. */
  transcript: z.string(),
  /** A folder with the commit that the last event saw; null for one without a workspace. */
  folder: z.string().nullable(),
})
export type OpenedSession = z.infer<typeof openedSessionSchema>

/** Body of `POST /sessions/:id/close`: the conversation as the program has left it; base64. */
export const closeSessionSchema = z.strictObject({
  conversation: z.string().regex(/^[\w-]{1,100}$/),
  transcript: z.base64(),
  /** That of the answer of `open`: events may have gone on with it since. */
  turns: z.int(),
})
