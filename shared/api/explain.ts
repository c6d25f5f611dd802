import { z } from 'zod'

/*
 * The documents of the HTTP API about trying a webhook out: `webhook explain` and `webhook learn`.
 */

const sentHeadersSchema = z.record(z.string(), z.union([z.string(), z.array(z.string())]))

/**
 * Body of `POST /webhooks/explain`: a string payload is the raw body, other values are serialised as JSON. With
 * `event` it is the delivery of that event, while its payload is in memory.
 */
export const explainSchema = z.strictObject({
  path: z.string().min(1).max(2048),
  headers: sentHeadersSchema.optional(),
  payload: z.unknown().optional(),
  event: z.string().max(100).optional(),
})
export type Explain = z.infer<typeof explainSchema>

/** The effect of one rule on a delivery. */
const ruleExplanationSchema = z.strictObject({
  /** Name of the rule, where the webhook has rules. */
  rule: z.string().optional(),
  /** It would run the agent: it matches, and it is neither a handshake nor caused by doorward. */
  matches: z.boolean(),
  isPaused: z.literal(true).optional(),
  /** The event that `on` names; `actual` is null where the delivery names none. */
  on: z
    .strictObject({
      expected: z.array(z.string()),
      actual: z.string().nullable(),
      matches: z.boolean(),
    })
    .optional(),
  filter: z.array(
    z.strictObject({
      /** The path, or `any` or `none`, whose conditions follow. */
      path: z.string(),
      expected: z.array(z.string()),
      /** The expectation in words. */
      condition: z.string(),
      /** The actual value, a list of them for a path with `[*]`; null if it is missing. */
      actual: z.json(),
      matches: z.boolean(),
      /** For a condition of `any` or `none`, where it is: `any[0]`. */
      within: z.string().optional(),
      /** A similar path, if the written one does not exist. */
      hint: z.string().optional(),
    }),
  ),
  /** The name that a comment has to have; `detail` says why this one does not run it. */
  mention: z.strictObject({ expected: z.string(), detail: z.string().optional() }).optional(),
  prompt: z.string(),
  /** Why the prompt cannot be made of this payload, which refuses the delivery. */
  promptFault: z.string().optional(),
  /** The ranges of the prompt that come from the payload, in UTF-16 units. */
  substituted: z.array(z.strictObject({ path: z.string(), start: z.int(), end: z.int() })),
  agent: z.strictObject({
    name: z.string(),
    kind: z.string(),
    argv: z.array(z.string()).optional(),
    /** Why it cannot run here. */
    detail: z.string().optional(),
    /** Why it would run without the sandbox that it asks for. */
    unconfined: z.string().optional(),
    /** The hosts that it reaches, and the resources that it may take, in its sandbox. */
    sandbox: z.string().optional(),
  }),
  /** The code that the agent sees. Nothing is fetched, so it may not be there. */
  workspace: z
    .strictObject({
      repo: z.string(),
      ref: z.string(),
      base: z.string().optional(),
      /** Why its values cannot be used. */
      detail: z.string().optional(),
    })
    .optional(),
  /** The newest of its key runs; `detail` says why this one has no key. */
  coalesce: z
    .strictObject({ key: z.string().optional(), detail: z.string().optional() })
    .optional(),
  /** How many runs `max_runs` leaves; with `isUsedUp` the event would be filtered. */
  maxRuns: z.strictObject({ limit: z.string(), left: z.int(), isUsedUp: z.boolean() }).optional(),
  /** The budget that is used up, so that the event would be filtered. */
  overBudget: z.string().optional(),
  /** The messages for each target if the agent answered with the prompt. */
  targets: z.array(
    z.strictObject({
      target: z.string(),
      parts: z.array(z.string()),
      detail: z.string().optional(),
    }),
  ),
})
export type RuleExplanation = z.infer<typeof ruleExplanationSchema>

/**
 * The explanation of a delivery, without running it: that of the first rule that matches, else of the
 * first.
 */
export const explanationSchema = ruleExplanationSchema.extend({
  webhook: z.string(),
  signature: z.strictObject({
    scheme: z.string(),
    result: z.enum(['valid', 'invalid', 'not-given', 'not-required']),
    detail: z.string().optional(),
  }),
  handshake: z.string().optional(),
  /** It is about a comment or message that this home wrote, and is ignored to prevent a loop. */
  ownComment: z.boolean().optional(),
  /** The events that this delivery became before: it would not run again. */
  duplicateOf: z.array(z.string()).optional(),
  /** All rules of a webhook that has rules, in their order. */
  rules: z.array(ruleExplanationSchema).optional(),
})
export type Explanation = z.infer<typeof explanationSchema>

/** Body of `POST /webhooks/learn`: without a payload it waits for the next delivery. */
export const learnSchema = z.strictObject({
  path: z.string().min(1).max(2048),
  payload: z.unknown().optional(),
})

/** Body of `POST /webhooks/test-key`: the public key, in PEM, of the next delivery by `webhook send`. */
export const testKeySchema = z.strictObject({
  path: z.string().min(1).max(2048),
  key: z.string().max(4096),
})

/** The paths of a payload without its values, and suggestions made from them. */
export const payloadDescriptionSchema = z.strictObject({
  webhook: z.string(),
  paths: z.array(z.strictObject({ path: z.string(), type: z.string() })),
  /** True when more paths exist than are listed. */
  cut: z.boolean(),
  /** The events of the payload as `on` names them, where the sender names them. */
  on: z.array(z.string()).optional(),
  /** Paths that distinguish the kinds of events of this sender. */
  filter: z.array(z.string()),
  promptTemplate: z.string(),
})
export type PayloadDescription = z.infer<typeof payloadDescriptionSchema>
