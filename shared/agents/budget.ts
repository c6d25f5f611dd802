import { z } from 'zod'

/*
 * What runs may cost: of one run, a day and a month, in dollars or in tokens.
 */

/** What is spent, in one of two units. */
export type Amount = { readonly usd: number } | { readonly tokens: number }

const notAmount = 'not an amount: write dollars as 5 or 0.50, or tokens as 500k tokens or 2m tokens'

const dollars = z
  .number(notAmount)
  .positive()
  .max(1_000_000)
  .transform((usd) => ({ usd }))

const tokens = z
  .string(notAmount)
  .regex(/^[1-9]\d{0,8}(\.\d{1,3})?[km]? tokens$/, notAmount)
  .transform((text) => {
    const factor = { k: 1000, m: 1_000_000 }[/[km](?= )/.exec(text)?.[0] ?? ''] ?? 1
    return { tokens: Math.round(Number.parseFloat(text) * factor) }
  })

const amount = z.union([dollars, tokens], notAmount)

/** Of a rule, an agent, or all of gateway.yaml. */
export const budgetSchema = z.strictObject({
  run: dollars
    .optional()
    .describe('Dollars after which a run of claude or opencode is ended. Default: no limit.'),
  day: amount
    .optional()
    .describe(
      'What the runs of a day may use, in dollars or as 2m tokens; events over it are passed over. Default: no limit.',
    ),
  month: amount.optional().describe('The same of a calendar month. Default: no limit.'),
})
export type Budget = z.output<typeof budgetSchema>

/** An agent, as far as what it says of its use depends on it. */
type Spender = {
  readonly kind: string
  readonly usage_path?: string | undefined
  readonly base_url?: string | undefined
}

/** OpenRouter says what each answer costs; others behind the same API do not. */
const routerForm = /^https:\/\/openrouter\.ai(?=[:/]|$)/

/** What an agent says of a run. */
export const says = ({
  kind,
  usage_path: path,
  base_url: base = '',
}: Spender): { readonly usd: boolean; readonly tokens: boolean } => {
  if (kind === 'http') return { usd: path !== undefined, tokens: path !== undefined }
  const usd = kind === 'claude' || kind === 'opencode' || routerForm.test(base)
  return { usd, tokens: usd || kind === 'codex' || kind === 'gemini' || kind === 'openai' }
}

/** They say what a run costs while it goes on, or end it themselves. */
const endsByCost = ['claude', 'opencode']

/** Why an agent cannot be held to a budget: it does not say what it uses. */
export const findBudgetFault = (
  agent: Spender,
  { run, day, month }: Budget,
): { readonly key: keyof Budget; readonly reason: string; readonly hint: string } | undefined => {
  if (run && !endsByCost.includes(agent.kind))
    return {
      key: 'run',
      reason: `only runs of claude and opencode end by their cost, and the agent is of kind ${agent.kind}`,
      hint: 'write day or month',
    }
  for (const [key, most] of [
    ['day', day],
    ['month', month],
  ] as const) {
    if (!most) continue
    if (!says(agent).tokens)
      return {
        key,
        reason: `an agent of kind ${agent.kind} does not say what it uses`,
        hint: agent.kind === 'http' ? 'set usage_path of the agent' : 'write max_runs, as 50/day',
      }
    if ('usd' in most && !says(agent).usd)
      return {
        key,
        reason: `an agent of kind ${agent.kind} does not say what it costs`,
        hint: 'use tokens, as 2m tokens',
      }
  }
  return undefined
}

/** The least of the amounts at which a run ends, in dollars. */
export const toRunLimit = (budgets: readonly (Budget | undefined)[]): Budget['run'] => {
  const given = budgets.flatMap((budget) => budget?.run ?? [])
  return given.length === 0 ? undefined : { usd: Math.min(...given.map(({ usd }) => usd)) }
}
