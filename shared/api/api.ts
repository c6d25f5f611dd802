import { z } from 'zod'
import { machineRole } from '../config/values.ts'
import { eventStates, stages } from '../event-states.ts'
import { providerSummarySchema, tokenSummarySchema } from './logins.ts'
import { scheduleSchema } from './schedules.ts'
import { eventSessionSchema } from './sessions.ts'
import { usageSchema, usageSumSchema } from './usage.ts'

export * from './logins.ts'
export * from './sessions.ts'
export * from './usage.ts'

/*
 * The documents of the daemon's HTTP API: times in ISO 8601 UTC, durations in milliseconds, scopes as
 * lists. Requests are parsed strictly; tests check the responses.
 */

/** What an error or a problem is about: names, never a sentence. */
const aboutSchema = z.strictObject({
  provider: z.string().optional(),
  webhook: z.string().optional(),
  agent: z.string().optional(),
  target: z.string().optional(),
  scope: z.string().optional(),
  event: z.string().optional(),
  file: z.string().optional(),
  port: z.int().optional(),
})

/** RFC 9457 `application/problem+json`, with a stable `code`. */
export const problemSchema = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  hint: z.string().optional(),
  about: aboutSchema.optional(),
})
export type ProblemDocument = z.infer<typeof problemSchema>

export const healthSchema = z.strictObject({
  status: z.literal('ok'),
  name: z.literal('doorward'),
  version: z.string(),
})

export type EventState = (typeof eventStates)[number]
export type Stage = (typeof stages)[number]

const targetResultSchema = z.strictObject({
  target: z.string(),
  state: z.enum(['waiting', 'done', 'failed', 'previewed']),
  attempts: z.int(),
  /** Why it failed; the event has the code of the first failed target. */
  code: z.string().optional(),
  detail: z.string().optional(),
  /** The exact text for it, in `GET /events/:id` while that is in memory and nothing was sent. */
  preview: z.string().optional(),
})
export type TargetResult = z.infer<typeof targetResultSchema>

/** Header with id and status of an event, for responses whose body is meant for the sender (Slack). */
export const eventHeader = 'doorward-event'
/** Header of a delivery by `webhook send` that is signed with a key pair made for it. */
export const testKeyHeader = 'doorward-test-key'

/**
 * What a delivery is about: the sender's own name of it (`acme/shop#12`), one line of at most 120 columns that begins
 * with it, its page by https, and `pull request`, `invoice`, or `event` where the payload names nothing.
 */
const subjectSchema = z.strictObject({
  key: z.string(),
  title: z.string(),
  url: z.string().optional(),
  kind: z.string(),
})

/** What a target has made for an event, in a few words, and its page. */
const eventPageSchema = z.strictObject({ target: z.string(), url: z.string(), what: z.string() })

/** The result of a request of an answer: `labels`, `comment`, `issue`, `close`, `assign`, or `other`. */
const outputResultSchema = z.strictObject({
  kind: z.string(),
  state: z.enum(['done', 'dropped']),
  why: z.string().optional(),
})
export type OutputResult = z.infer<typeof outputResultSchema>

/** A context of a prompt: bytes as the agent got them, and in words what had no room. */
const filledContextSchema = z.strictObject({
  name: z.string(),
  bytes: z.int(),
  leftOut: z.string().nullable(),
})

/**
 * What a program in a sandbox reaches. `open`: every host but those of metadata; `model`: the hosts of its model, and
 * those that the owner adds; `off`: none.
 */
export const networkModes = ['open', 'model', 'off'] as const
export type NetworkMode = (typeof networkModes)[number]

const sandboxSchema = z.strictObject({
  kind: z.string(),
  network: z.enum(networkModes),
  /** Hosts and ports that it asked for and did not reach, at most 20. */
  refused: z.array(z.string()).optional(),
  /** The kernel does not bound its processes; they are counted. */
  unbounded: z.literal(true).optional(),
})

/** What the agent of the last run really had, and what it used. */
export const runInputSchema = z.strictObject({
  /** Bytes of the prompt with its contexts. */
  promptSize: z.int().optional(),
  context: z.array(filledContextSchema).optional(),
  /** That of its program; null for a program that could reach what you can. */
  sandbox: sandboxSchema.nullable().optional(),
  usage: usageSchema.optional(),
  session: eventSessionSchema.optional(),
})
export type RunInput = z.infer<typeof runInputSchema>

/** The question to the owner before an answer leaves, and its answer. */
const approvalSchema = z.strictObject({
  state: z.enum(['waiting', 'approved', 'declined', 'expired']),
  /** SHA-256 over what would be sent where, in hex. */
  digest: z.string(),
  askedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** `approve.by` of the rule. */
  asked: z.array(z.string()),
  /** `owner`, or the id of a person at `where`. */
  by: z.string().optional(),
  /** `cli`, `page`, `desktop`, `api`, `check`, or a chat such as `slack:#ops`. */
  where: z.string().optional(),
  /** The owner's words for the run after this answer. */
  remark: z.string().optional(),
})
export type Approval = z.infer<typeof approvalSchema>

/** The program through which the owner answers. */
const answeredFrom = z.enum(['cli', 'desktop', 'page']).optional()
/** The digest of the answer that the person has seen, or its beginning: an older one does not count. */
const seenDigest = z
  .string()
  .regex(/^[0-9a-f]{8,64}$/)
  .optional()
/** Bodies of `POST /events/:id/approve`, `/reject` and `/again`. */
export const approveSchema = z.strictObject({
  /** Comments of a review that are left out, by their place in the answer, from 0. */
  without: z.array(z.int().min(0)).max(1000).optional(),
  where: answeredFrom,
  digest: seenDigest,
})
export const rejectSchema = z.strictObject({ where: answeredFrom, digest: seenDigest })
export const againSchema = z.strictObject({
  remark: z.string().regex(/\S/, 'is empty').max(4000, 'has more than 4000 characters'),
  where: answeredFrom,
  digest: seenDigest,
})

/** One event in lists and the stream. */
export const eventSchema = z.strictObject({
  id: z.string(),
  kind: z.enum(['webhook', 'oauth', 'daemon']),
  /** Path of the webhook; null for other events. */
  webhook: z.string().nullable(),
  /** Name of the rule, where the webhook has rules. */
  rule: z.string().optional(),
  subject: subjectSchema.optional(),
  receivedAt: z.iso.datetime(),
  state: z.enum(eventStates),
  stage: z.enum(stages).optional(),
  code: z.string().optional(),
  detail: z.string().optional(),
  deliveryId: z.string().optional(),
  /** Names of what the code and the detail are about, such as the event that a duplicate repeats. */
  about: aboutSchema.optional(),
  /** True for a valid signature; false when the webhook has no secret. */
  signed: z.boolean().optional(),
  /** Not sent here, so that no signature was checked: read from the API of the sender, or begun by a schedule. */
  source: z.enum(['api', 'schedule', 'slack', 'telegram', 'command', 'files']).optional(),
  /** Bytes of the body. */
  size: z.int().optional(),
  agent: z.string().nullable(),
  /** The machine that runs or ran its agent, with `queue.engine: nats`. */
  machine: z.string().optional(),
  target: z.string().optional(),
  attempts: z.int(),
  durations: z.strictObject({
    queuedMs: z.number().optional(),
    agentMs: z.number().optional(),
    deliverMs: z.number().optional(),
  }),
  targets: z.array(targetResultSchema),
  ...runInputSchema.shape,
  links: z.array(eventPageSchema).optional(),
  approval: approvalSchema.optional(),
  outputs: z.array(outputResultSchema).optional(),
  /** The beginning of the answer, without control characters. */
  resultPreview: z.string().optional(),
})
export type EventRecord = z.infer<typeof eventSchema>

/** `GET /events/:id`: the record, with the texts that are still in memory. */
export const eventDetailSchema = eventSchema.extend({
  prompt: z.string().optional(),
  result: z.string().optional(),
})
export type EventDetail = z.infer<typeof eventDetailSchema>

/** An event of the history (`GET /events?since=`): the rest of its record is there only where `texts` is `kept`. */
export const pastEventSchema = eventDetailSchema.extend({
  past: z
    .strictObject({
      endedAt: z.iso.datetime(),
      subjectKind: z.string().optional(),
      texts: z.enum(['none', 'kept', 'unreadable']),
    })
    .optional(),
})
export type PastEvent = z.infer<typeof pastEventSchema>

/** Response of `DELETE /events`. */
export type ForgottenHistory = { readonly files: number; readonly bytes: number }

/** `GET /events/:id/prompt`: the whole prompt of the last run, as its agent had it. */
export const agentPromptSchema = z.strictObject({ prompt: z.string() })
export type AgentPrompt = z.infer<typeof agentPromptSchema>

/** Response of `POST /events/:id/link`: a link to the page of the event that works once. */
export const eventLinkSchema = z.strictObject({ url: z.string(), expiresAt: z.iso.datetime() })
export type EventLink = z.infer<typeof eventLinkSchema>

const countsSchema = z.strictObject({
  accepted: z.int(),
  filtered: z.int(),
  duplicate: z.int(),
  rejected: z.int(),
  done: z.int(),
  failed: z.int(),
  dropped: z.int(),
})

const webhookSummarySchema = z.strictObject({
  path: z.string(),
  url: z.string(),
  agent: z.string(),
  enabled: z.boolean(),
  scheme: z.string(),
  /** Who sends: `GitHub`, `any sender with an HMAC`. */
  sender: z.string().optional(),
  /** True where nothing is delivered, for a webhook without rules. */
  dryRun: z.literal(true).optional(),
  secret: z.enum(['set', 'unset', 'none']),
  deliverTo: z.array(z.string()),
  counts: countsSchema,
  lastEventAt: z.iso.datetime().nullable(),
  /** The rules of a webhook that has some; `agent` and `deliverTo` are then those of all, each once. */
  rules: z
    .array(
      z.strictObject({
        name: z.string(),
        on: z.array(z.string()).optional(),
        agent: z.string(),
        deliverTo: z.array(z.string()),
        /** False for a rule that is paused. */
        enabled: z.literal(false).optional(),
        dryRun: z.literal(true).optional(),
        counts: countsSchema,
      }),
    )
    .optional(),
})
export type WebhookSummary = z.infer<typeof webhookSummarySchema>

/** Response of `POST /daemon/reload`. */
export const reloadedSchema = z.strictObject({
  status: z.literal('reloaded'),
  webhooks: z.int(),
  agents: z.int(),
  /** Changes that need a restart. */
  problems: z.array(z.strictObject({ code: z.string(), detail: z.string(), hint: z.string() })),
})
export type Reloaded = z.infer<typeof reloadedSchema>

/** Response of `POST /daemon/restart`: the new daemon, and how many events the old one still finishes. */
export const restartedSchema = z.strictObject({
  status: z.literal('restarted'),
  pid: z.int(),
  url: z.string(),
  /** The public address of the webhooks, if it is not `url`. */
  publicUrl: z.string().optional(),
  version: z.string(),
  startedAt: z.string(),
  previous: z.strictObject({ pid: z.int(), unfinished: z.int() }),
})
export type Restarted = z.infer<typeof restartedSchema>

const statusProblemSchema = z.strictObject({
  code: z.string(),
  detail: z.string(),
  hint: z.string(),
  about: aboutSchema.optional(),
})
export type StatusProblem = z.infer<typeof statusProblemSchema>

const timingSchema = z.strictObject({ count: z.int(), p50Ms: z.number(), p99Ms: z.number() })

/** Median and 99th percentile of durations since the daemon started. */
const timingsSchema = z.strictObject({
  /** From the headers of a delivery to the response. */
  answer: timingSchema,
  /** Waiting for an agent. */
  queue: timingSchema,
  agent: timingSchema,
  /** All targets of one answer. */
  deliver: timingSchema,
})
export type Timings = z.infer<typeof timingsSchema>

/** A machine that shares the queue, as it last reported itself. */
const machineSchema = z.strictObject({
  name: z.string(),
  role: machineRole,
  version: z.string(),
  seenAt: z.iso.datetime(),
  /** How far its clock is ahead of this machine's, in milliseconds. */
  clockMs: z.int().optional(),
  /** The agents that it runs. */
  agents: z.array(z.strictObject({ name: z.string(), running: z.int(), free: z.int() })),
})
export type Machine = z.infer<typeof machineSchema>

/** The broker of `queue.engine: nats`. */
const brokerSchema = z.strictObject({
  connected: z.boolean(),
  /** Why there is no connection, or that another machine has another key. */
  problem: z.string().optional(),
  /** Why this worker gets no runs of some of its agents. */
  notOffered: z.string().optional(),
  /** Host and port. */
  server: z.string().optional(),
  /** The version of its program. */
  version: z.string().optional(),
  /** Events that no worker has taken yet; missing where the broker does not say. */
  waiting: z.int().optional(),
  /** Runs that were given to another worker since this daemon started. */
  redelivered: z.int(),
})
export type Broker = z.infer<typeof brokerSchema>

/** What brings the events of webhooks that take no requests. */
const sourceSummarySchema = z.strictObject({
  kind: z.enum(['slack', 'telegram', 'command', 'files']),
  /** `read from slack by socket` */
  how: z.string(),
  /** The paths of its webhooks; none where it only hears the buttons of approvals. */
  webhooks: z.array(z.string()),
  /** `waiting`: to connect again. `failed`: only a change of the configuration helps. */
  state: z.enum(['connecting', 'connected', 'waiting', 'failed']),
  /** Connected since. */
  since: z.iso.datetime().optional(),
  lastEventAt: z.iso.datetime().optional(),
  /** Events of people who may not start anything, or that were left out of a flood. */
  ignored: z.int().optional(),
  problem: statusProblemSchema.optional(),
})
export type SourceSummary = z.infer<typeof sourceSummarySchema>

export const statusSchema = z.strictObject({
  version: z.string(),
  startedAt: z.iso.datetime(),
  url: z.string(),
  publicUrl: z.string().optional(),
  tunnel: z
    .strictObject({ program: z.string(), state: z.string(), arrivedAt: z.string().optional() })
    .optional(),
  /** True while it stops: it finishes accepted events and accepts no new ones. */
  stopping: z.literal(true).optional(),
  queue: z.strictObject({ waiting: z.int(), running: z.int(), bytes: z.int() }),
  /** What the runs of today have used, by the clock of this machine; absent before the first. */
  today: usageSumSchema.optional(),
  /** Events that wait for an approval, the oldest first. */
  approvals: z.array(eventSchema).optional(),
  timings: timingsSchema.optional(),
  broker: brokerSchema.optional(),
  machines: z.array(machineSchema).optional(),
  providers: z.array(providerSummarySchema),
  tokens: z.array(tokenSummarySchema),
  webhooks: z.array(webhookSummarySchema),
  sources: z.array(sourceSummarySchema).optional(),
  schedules: z.array(scheduleSchema).optional(),
  events: z.array(eventSchema),
  /** The last three that failed or were dropped, regardless of later events. */
  failures: z.array(eventSchema).optional(),
  /** The last finished run, regardless of later events without one. */
  lastRun: eventSchema.optional(),
  problems: z.array(statusProblemSchema),
})
export type Status = z.infer<typeof statusSchema>

/** `run/daemon.json`, which exists while the daemon runs. */
const daemonFileSchema = z.object({
  pid: z.int(),
  /** `handoverVersion`; missing in daemons before 6. */
  handover: z.int().optional(),
  url: z.string(),
  publicUrl: z.string().optional(),
  version: z.string(),
  startedAt: z.string(),
})
export type DaemonFile = z.infer<typeof daemonFileSchema>
