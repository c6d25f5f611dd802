import { z } from 'zod'
import {
  type EventRecord,
  type ProviderSummary,
  type Status,
  type TargetResult,
  type TokenSummary,
  type WebhookSummary,
  eventStates,
  stages,
} from '../shared/api.ts'

/*
 * What a daemon says, read by a tray of another version: what is not known is passed over, and a value
 * that is new becomes the known one that claims least. What comes out can be shown as it is, whatever
 * went in: texts and lists are bounded, times are times.
 */

const maxText = 4000
const text = z.string().transform((value) => value.slice(0, maxText))
const name = z.string().max(maxText)
const count = z.int().nonnegative().catch(0)

/** A time that a clock can show. */
const time = z.iso
  .datetime({ offset: true })
  .refine((value) => Math.abs(Date.parse(value)) < 8e15, 'not a time')

/** The readable items of a list; without a list, none. */
const listOf = <Item>(item: z.ZodType<Item>, maxItems: number) =>
  z
    .array(z.unknown())
    .catch([])
    .transform((values) =>
      values.slice(0, maxItems).flatMap((value) => {
        const read = item.safeParse(value)
        return read.success ? [read.data] : []
      }),
    )

const optional = <Value>(value: z.ZodType<Value>) => value.optional().catch(undefined)

const targetSchema: z.ZodType<TargetResult> = z.object({
  target: text,
  state: z.enum(['waiting', 'done', 'failed']).catch('waiting'),
  attempts: count,
  code: optional(text),
  detail: optional(text),
})

const eventSchema: z.ZodType<EventRecord> = z.object({
  id: name,
  kind: z.enum(['webhook', 'oauth', 'daemon']).catch('daemon'),
  webhook: text.nullable().catch(null),
  receivedAt: time,
  // Of a state that is new no more is known than that something came in.
  state: z.enum(eventStates).catch('accepted'),
  stage: optional(z.enum(stages)),
  code: optional(text),
  detail: optional(text),
  deliveryId: optional(text),
  size: optional(z.int()),
  agent: text.nullable().catch(null),
  target: optional(text),
  attempts: count,
  durations: z
    .object({
      queuedMs: optional(z.number()),
      agentMs: optional(z.number()),
      deliverMs: optional(z.number()),
    })
    .catch({}),
  targets: listOf(targetSchema, 100),
  resultPreview: optional(text),
})

const account = z.object({ id: text, name: text }).nullable().catch(null)

const providerStates = ['ok', 'expired', 'needs-login', 'not-logged-in'] as const
const providerSchema: z.ZodType<ProviderSummary> = z
  .object({ provider: name, clientKnown: z.boolean().catch(false), status: text, account })
  .transform(({ status, ...rest }) => ({
    ...rest,
    // Of one that is new no more is known than whether somebody is logged in.
    status:
      providerStates.find((known) => known === status) ?? (rest.account ? 'ok' : 'not-logged-in'),
  }))

const tokenSchema: z.ZodType<TokenSummary> = z.object({
  provider: name,
  status: z.enum(['ok', 'expired', 'needs-login']).catch('ok'),
  account,
  scopes: listOf(text, 1000),
  missingScopes: optional(listOf(text, 1000)),
  expiresAt: time.nullable().catch(null),
  refreshable: z.boolean().catch(true),
  obtainedAt: text.catch(''),
})

const countsSchema = z.object({
  accepted: count,
  filtered: count,
  duplicate: count,
  rejected: count,
  done: count,
  failed: count,
  dropped: count,
})

const webhookSchema: z.ZodType<WebhookSummary> = z.object({
  path: text,
  url: text.catch(''),
  agent: text.catch(''),
  enabled: z.boolean().catch(true),
  scheme: text.catch(''),
  secret: z.enum(['set', 'unset', 'none']).catch('set'),
  deliverTo: listOf(text, 100),
  counts: countsSchema.catch(() => countsSchema.parse({})),
  lastEventAt: time.nullable().catch(null),
})

const problemSchema = z.object({ code: text, detail: text, hint: text.catch('') })

const statusSchema: z.ZodType<Status> = z.object({
  version: text,
  startedAt: text.catch(''),
  url: text.catch(''),
  publicUrl: optional(text),
  queue: z.object({ waiting: count, running: count, bytes: count }),
  providers: listOf(providerSchema, 200),
  tokens: listOf(tokenSchema, 200),
  webhooks: listOf(webhookSchema, 2000),
  events: listOf(eventSchema, 100),
  problems: listOf(problemSchema, 200),
})

/** A status as far as it can be read; undefined when it is none. */
export const readStatus = (value: unknown): Status | undefined => statusSchema.safeParse(value).data

/** One message of the stream as far as it can be read; undefined when it is no event. */
export const readEvent = (data: string): EventRecord | undefined => {
  try {
    return eventSchema.safeParse(JSON.parse(data)).data
  } catch {
    return undefined
  }
}
