import { z } from 'zod'
import { accountNameForm, providerNameForm, scopeForm } from './config/name-forms.ts'
import { machineRole } from './config/values.ts'
import { eventStates, stages } from './event-states.ts'

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
  state: z.enum(['waiting', 'done', 'failed']),
  attempts: z.int(),
  /** Why it failed; the event has the code of the first failed target. */
  code: z.string().optional(),
  detail: z.string().optional(),
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

/** A context of a prompt: bytes as the agent got them, and in words what had no room. */
const filledContextSchema = z.strictObject({
  name: z.string(),
  bytes: z.int(),
  leftOut: z.string().nullable(),
})

/** What no run reaches: a program that says more is not believed. */
export const maxTokens = 1e9
export const maxCostUsd = 10_000
/** It comes from a program or a server. */
export const modelForm = /^[\w.:/@+-]{1,100}$/

const tokens = z.int().min(0).max(maxTokens)

/** What a run has used, as far as its program or model says it: what is not known is missing. */
export const usageSchema = z.strictObject({
  /** With those that were cached. */
  inputTokens: tokens.optional(),
  /** With the thinking. */
  outputTokens: tokens.optional(),
  cachedTokens: tokens.optional(),
  costUsd: z.number().min(0).max(maxCostUsd).optional(),
  model: z.string().regex(modelForm).optional(),
  turns: tokens.optional(),
})
export type Usage = z.infer<typeof usageSchema>

export const usageGroups = ['rule', 'agent', 'model', 'day'] as const
export type UsageGroup = (typeof usageGroups)[number]

const usageSumSchema = z.strictObject({
  runs: z.int(),
  inputTokens: z.int(),
  outputTokens: z.int(),
  cachedTokens: z.int(),
  /** Of the runs that say it. */
  costUsd: z.number().optional(),
})

/** `GET /usage?since=&by=`: the runs that say what they used. A day is one of this machine's clock. */
export const usageReportSchema = z.strictObject({
  since: z.iso.datetime(),
  rows: z.array(usageSumSchema.extend({ key: z.string() })),
  total: usageSumSchema,
})
export type UsageReport = z.infer<typeof usageReportSchema>

/** What the agent of the last run really had, and what it used. */
export const runInputSchema = z.strictObject({
  /** Bytes of the prompt with its contexts. */
  promptSize: z.int().optional(),
  context: z.array(filledContextSchema).optional(),
  /** That of its program; null for a program that could reach what you can. */
  sandbox: z.strictObject({ kind: z.string(), network: z.boolean() }).nullable().optional(),
  usage: usageSchema.optional(),
})
export type RunInput = z.infer<typeof runInputSchema>

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
  /** Read from the API of the sender, not sent here; no signature was checked. */
  source: z.literal('api').optional(),
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

const accountSchema = z.strictObject({ id: z.string(), name: z.string() })
export type Account = z.infer<typeof accountSchema>

/** Body of `POST /oauth/start`. */
export const startLoginSchema = z.strictObject({
  /** `github`, or `github@work` for an account with a name. */
  provider: z.string().min(1).max(100),
  clientId: z.string().min(1).max(512).optional(),
  clientSecret: z.string().max(4096).optional(),
  scopes: z.array(z.string().regex(scopeForm, 'not a scope')).max(200).optional(),
  /** The user enters a code at the provider (RFC 8628); no callback is needed. */
  device: z.boolean().optional(),
})
export type StartLogin = z.infer<typeof startLoginSchema>

export const startedLoginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  authorizationUrl: z.string(),
  /** Until when the page can be opened, where the provider limits that (RFC 9126). */
  openBefore: z.iso.datetime().optional(),
  redirectUri: z.string(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime(),
  /** The provider has an endpoint for logins by device code. */
  device: z.literal(true).optional(),
})
export type StartedLogin = z.infer<typeof startedLoginSchema>

/** The response to a start with `device`: the page to open, and the code to enter there. */
export const startedDeviceLoginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  verificationUrl: z.string(),
  /** The page with the code in it: anyone who sees it could approve the login with another account. */
  verificationUrlComplete: z.string().optional(),
  userCode: z.string(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime(),
})
export type StartedDeviceLogin = z.infer<typeof startedDeviceLoginSchema>

export const loginSchema = z.strictObject({
  loginId: z.string(),
  provider: z.string(),
  status: z.enum(['pending', 'authorized', 'failed', 'expired', 'cancelled']),
  error: z
    .strictObject({ code: z.string(), message: z.string(), hint: z.string().optional() })
    .optional(),
  account: accountSchema.nullable().optional(),
  /** The account of the replaced login, if it is another one. */
  replaced: accountSchema.optional(),
  /** Another login, such as `github`, that is of the same account. */
  sameAccountAs: z.string().optional(),
  /** Requested scopes that were not granted; omitted when none are missing. */
  missingScopes: z.array(z.string()).optional(),
})
export type Login = z.infer<typeof loginSchema>

/** Body of `POST /oauth/logins/:loginId/redirect`. */
export const pastedRedirectSchema = z.strictObject({ url: z.string().min(1).max(8192) })

/** Body of `POST /oauth/import`: the token of another program, for a provider with the dialect of GitHub. */
export const importLoginSchema = z.strictObject({
  provider: z.string().min(1).max(100),
  accessToken: z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'not a token'),
})
export type ImportLogin = z.infer<typeof importLoginSchema>

const importedLoginSchema = z.strictObject({
  provider: z.string(),
  account: accountSchema,
  scopes: z.array(z.string()),
  /** Omitted where GitHub names no time. */
  expiresAt: z.iso.datetime().optional(),
  /** The same as in a login. */
  replaced: accountSchema.optional(),
  sameAccountAs: z.string().optional(),
})
export type ImportedLogin = z.infer<typeof importedLoginSchema>

export const tokenSummarySchema = z.strictObject({
  /** `github`, or `github@work` for an account with a name. */
  provider: z.string(),
  /** The account that the provider's name means, where it has accounts with names. */
  default: z.literal(true).optional(),
  status: z.enum(['ok', 'expired', 'needs-login']),
  account: accountSchema.nullable(),
  scopes: z.array(z.string()),
  /** Requested scopes that were not granted; omitted when none are missing. */
  missingScopes: z.array(z.string()).optional(),
  expiresAt: z.iso.datetime().nullable(),
  /** When the refresh token expires; omitted if the provider does not say. */
  loginExpiresAt: z.iso.datetime().optional(),
  refreshable: z.boolean(),
  obtainedAt: z.iso.datetime(),
  /** Its tokens are made for each step. */
  isBot: z.literal(true).optional(),
})
export type TokenSummary = z.infer<typeof tokenSummarySchema>

/** Response of `GET /oauth/tokens/:provider/access`, the only document with a token. */
export const accessTokenSchema = z.strictObject({
  provider: z.string(),
  accessToken: z.string(),
  tokenType: z.string(),
  expiresAt: z.iso.datetime().nullable(),
  scopes: z.array(z.string()),
})
export type AccessToken = z.infer<typeof accessTokenSchema>

/** Response of `DELETE /oauth/tokens/:provider`. */
export const logoutSchema = z.strictObject({
  provider: z.string(),
  removed: z.literal(true),
  revokedAtProvider: z.boolean(),
  detail: z.string().optional(),
})
export type Logout = z.infer<typeof logoutSchema>

/** Body of `POST /oauth/default`: the account that the provider's name means; null for the unnamed one. */
export const setDefaultSchema = z.strictObject({
  provider: z.string().regex(providerNameForm, 'not the name of a provider'),
  account: z.string().regex(accountNameForm, 'not the name of an account').nullable(),
})

/** Response of `POST /oauth/default`. */
export const defaultAccountSchema = z.strictObject({ provider: z.string(), default: z.string() })
export type DefaultAccount = z.infer<typeof defaultAccountSchema>

const providerSummarySchema = z.strictObject({
  provider: z.string(),
  clientKnown: z.boolean(),
  status: z.enum(['ok', 'expired', 'needs-login', 'not-logged-in']),
  account: accountSchema.nullable(),
  /** The known client supports only logins by device code. */
  device: z.literal(true).optional(),
})
export type ProviderSummary = z.infer<typeof providerSummarySchema>

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
  timings: timingsSchema.optional(),
  broker: brokerSchema.optional(),
  machines: z.array(machineSchema).optional(),
  providers: z.array(providerSummarySchema),
  tokens: z.array(tokenSummarySchema),
  webhooks: z.array(webhookSummarySchema),
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
