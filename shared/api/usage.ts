import { z } from 'zod'

/* The usage of runs, in the local API. */

/** No run reaches this: a program that says more is not believed. */
export const maxTokens = 1e9
export const maxCostUsd = 10_000
/** It comes from a program or a server. */
export const modelForm = /^[\w.:/@+-]{1,100}$/

const tokens = z.int().min(0).max(maxTokens)

/** What a run has used, as far as its program or model says it: what is not known is missing. */
export const usageSchema = z.strictObject({
  /** This includes those that were cached. */
  inputTokens: tokens.optional(),
  /** This includes the thinking. */
  outputTokens: tokens.optional(),
  cachedTokens: tokens.optional(),
  costUsd: z.number().min(0).max(maxCostUsd).optional(),
  model: z.string().regex(modelForm).optional(),
  turns: tokens.optional(),
})
export type Usage = z.infer<typeof usageSchema>

export const usageGroups = ['rule', 'agent', 'model', 'day'] as const
export type UsageGroup = (typeof usageGroups)[number]

export const usageSumSchema = z.strictObject({
  runs: z.int(),
  inputTokens: z.int(),
  outputTokens: z.int(),
  cachedTokens: z.int(),
  /** The sum of the runs that say it. */
  costUsd: z.number().optional(),
})

/** `GET /usage?since=&by=`: the runs that say what they used. A day is one of this machine's clock. */
export const usageReportSchema = z.strictObject({
  since: z.iso.datetime(),
  rows: z.array(usageSumSchema.extend({ key: z.string() })),
  total: usageSumSchema,
})
export type UsageReport = z.infer<typeof usageReportSchema>
export type UsageSum = z.infer<typeof usageSumSchema>
