import type { CliKind } from '../../shared/agents/clis.ts'
import { hasFlag } from '../../shared/agents/tools.ts'
import { maxCostUsd, maxTokens, modelForm, type Usage } from '../../shared/api/api.ts'
import { parseJson, textAt, valueAt } from '../util/payload-path.ts'
import { type CliOutput, parseJsonLines, parseLastDocument } from './cli-output.ts'

/*
 * What a run has used, by the output of its program or the answer of its model, also where the run has failed. Pure.
 * What a program does not say is missing, and so is a figure that no run can have.
 */

type Figures = { -readonly [Key in keyof Usage]?: Usage[Key] | undefined }

/** Undefined where no figure is known. */
const toUsage = ({ model, turns, ...figures }: Figures): Usage | undefined => {
  const known = withoutMissing(figures)
  if (Object.keys(known).length === 0) return undefined
  return withoutMissing({ ...known, model, turns })
}

const withoutMissing = (figures: Figures): Usage =>
  Object.fromEntries(Object.entries(figures).filter(([, figure]) => figure !== undefined))

/** A number of tokens that a run can have. */
const toTokens = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= maxTokens
    ? value
    : undefined

/** The sum of the figures at these names, where the first is known and none of the others is impossible. */
const sumAt = (document: unknown, first: string, ...others: string[]): number | undefined => {
  const parts = [first, ...others].map((name) => {
    const value = valueAt(document, name.split('.'))
    return name !== first && (value === undefined || value === null) ? 0 : toTokens(value)
  })
  return parts.reduce((sum, part) =>
    sum === undefined || part === undefined ? undefined : toTokens(sum + part),
  )
}

/** Programs say 0 for a model whose price they do not know. */
const toCost = (value: unknown, tokens: number | undefined): number | undefined => {
  if (typeof value !== 'number' || !(value >= 0 && value <= maxCostUsd)) return undefined
  return value === 0 && tokens !== 0 ? undefined : value
}

const toModel = (name: string | undefined): string | undefined =>
  name !== undefined && modelForm.test(name) ? name : undefined

const toTurns = (value: unknown): number | undefined => {
  const turns = toTokens(value)
  return turns === 0 ? undefined : turns
}

const readClaude = ({ stdout }: CliOutput): Usage | undefined => {
  const document = parseJson(stdout) ?? parseJsonLines(stdout)
  const result = [document].flat().findLast((item) => textAt(item, 'type') === 'result')
  const tokens = valueAt(result, ['usage'])
  const cached = ['cache_creation_input_tokens', 'cache_read_input_tokens']
  const inputTokens = sumAt(tokens, 'input_tokens', ...cached)
  // This includes the thinking.
  const outputTokens = sumAt(tokens, 'output_tokens')
  const models = Object.entries(valueAt(result, ['modelUsage']) ?? {})
  const [most] = models.toSorted(([, a], [, b]) => costOf(b) - costOf(a))
  return toUsage({
    inputTokens,
    outputTokens,
    cachedTokens: sumAt(tokens, 'cache_read_input_tokens'),
    costUsd: toCost(valueAt(result, ['total_cost_usd']), sumOf([inputTokens, outputTokens])),
    model: toModel(most?.[0]),
    turns: toTurns(valueAt(result, ['num_turns'])),
  })
}

const costOf = (figures: unknown): number => {
  const cost = valueAt(figures, ['costUSD'])
  return typeof cost === 'number' ? cost : 0
}

/** The figures of each turn are those of the whole thread. */
const readCodex = ({ stdout }: CliOutput): Usage | undefined => {
  const turns = parseJsonLines(stdout).filter((line) => textAt(line, 'type') === 'turn.completed')
  const tokens = valueAt(turns.at(-1), ['usage'])
  return toUsage({
    inputTokens: sumAt(tokens, 'input_tokens'),
    outputTokens: sumAt(tokens, 'output_tokens'),
    cachedTokens: sumAt(tokens, 'cached_input_tokens'),
  })
}

const readGemini = ({ stdout, stderr }: CliOutput): Usage | undefined => {
  const document = parseLastDocument(stdout) ?? parseLastDocument(stderr)
  const models = Object.entries(valueAt(document, ['stats', 'models']) ?? {})
  if (models.length === 0) return undefined
  const sum = (name: string, ...others: string[]) =>
    sumOf(models.map(([, figures]) => sumAt(figures, name, ...others)))
  return toUsage({
    inputTokens: sum('tokens.prompt', 'tokens.tool'),
    outputTokens: sum('tokens.candidates', 'tokens.thoughts'),
    cachedTokens: sum('tokens.cached'),
    // It may ask a small model where to send the prompt, before it asks the one that answers.
    model: toModel(models.at(-1)?.[0]),
    turns: toTurns(sum('api.totalRequests')),
  })
}

const sumOf = (figures: readonly (number | undefined)[]): number | undefined =>
  figures.reduce(
    (sum: number | undefined, figure) =>
      sum === undefined || figure === undefined ? undefined : toTokens(sum + figure),
    0,
  )

/** Each step has its own figures; one that is printed twice counts once. */
const readOpencode = ({ stdout }: CliOutput): Usage | undefined => {
  const finished = parseJsonLines(stdout).filter((line) => textAt(line, 'type') === 'step_finish')
  const steps = [
    ...new Map(finished.map((line, at) => [textAt(line, 'part', 'id') ?? at, line])).values(),
  ].map((line) => valueAt(line, ['part']))
  if (steps.length === 0) return undefined
  const sum = (name: string, ...others: string[]) =>
    sumOf(steps.map((step) => sumAt(valueAt(step, ['tokens']), name, ...others)))
  const inputTokens = sum('input', 'cache.read', 'cache.write')
  const outputTokens = sum('output', 'reasoning')
  // It says 0 where the model says nothing.
  if (inputTokens === 0 && outputTokens === 0) return undefined
  const cost = steps
    .map((step) => toCost(valueAt(step, ['cost']), 0))
    .reduce((all, one) => (all === undefined || one === undefined ? undefined : all + one))
  return toUsage({
    inputTokens,
    outputTokens,
    cachedTokens: sum('cache.read'),
    costUsd: toCost(cost, sumOf([inputTokens, outputTokens])),
    turns: toTurns(steps.length),
  })
}

const readers: Readonly<Record<CliKind, ((output: CliOutput) => Usage | undefined) | undefined>> = {
  claude: readClaude,
  codex: readCodex,
  gemini: readGemini,
  opencode: readOpencode,
  llm: undefined,
}

/** Flags that go on with a session, whose figures are then those of all its runs. */
const resumes: Partial<Record<CliKind, readonly string[]>> = {
  claude: ['--resume', '-r', '--continue', '-c'],
  codex: ['resume', 'fork'],
}

/** Figures that a program gives for all runs of a session. */
const summedUp: Partial<Record<CliKind, readonly ('costUsd' | TokenName)[]>> = {
  claude: ['costUsd'],
  codex: ['inputTokens', 'outputTokens', 'cachedTokens'],
}

type TokenName = 'inputTokens' | 'outputTokens' | 'cachedTokens'

/**
 * The usage of a run of an agent program; `args` are those of its entry. Of a run that goes on with a session it is
 * the difference to the `earlier` totals, and missing where these are not known.
 */
export const readCliUsage = (
  { kind, args = [] }: { readonly kind: CliKind; readonly args?: readonly string[] | undefined },
  output: CliOutput,
  earlier?: Usage,
): Usage | undefined => {
  const usage = readers[kind]?.(output)
  if (!usage || !(earlier ?? hasFlag(args, resumes[kind] ?? []))) return usage
  const own = (summedUp[kind] ?? []).map((name) => [name, toShare(usage[name], earlier?.[name])])
  return toUsage({ ...usage, ...Object.fromEntries(own) })
}

const toShare = (total: number | undefined, earlier: number | undefined): number | undefined => {
  if (total === undefined || earlier === undefined || total < earlier) return undefined
  // A sum of dollars is not exact.
  return Number((total - earlier).toFixed(12))
}

/** What a program says of all runs of a session, from which the next one's are subtracted. */
export const readTotals = (kind: CliKind, output: CliOutput): Usage | undefined => {
  const usage = readers[kind]?.(output)
  return (
    usage && withoutMissing(Object.fromEntries((summedUp[kind] ?? []).map((n) => [n, usage[n]])))
  )
}

/** `usage` of a chat completion; the answer may name the model that really answered. */
export const readOpenAiUsage = (document: unknown, asked: string): Usage | undefined => {
  const tokens = valueAt(document, ['usage'])
  const inputTokens = sumAt(tokens, 'prompt_tokens')
  const outputTokens = sumAt(tokens, 'completion_tokens')
  return toUsage({
    inputTokens,
    outputTokens,
    cachedTokens: sumAt(tokens, 'prompt_tokens_details.cached_tokens'),
    costUsd: toCost(readRouterCost(tokens), sumOf([inputTokens, outputTokens])),
    model: toModel(textAt(document, 'model')) ?? toModel(asked),
  })
}

/**
 * Dollars, as OpenRouter says them (openrouter.ai/docs/use-cases/usage-accounting). With a key of your own for the model
 * behind it, `cost` is only its fee, and the model is paid beside it.
 */
const readRouterCost = (usage: unknown): unknown => {
  const cost = valueAt(usage, ['cost'])
  if (valueAt(usage, ['is_byok']) !== true) return cost
  const upstream = valueAt(usage, ['cost_details', 'upstream_inference_cost'])
  return typeof cost === 'number' && typeof upstream === 'number' ? cost + upstream : undefined
}

/** The object of an `http` agent, with the names of `Usage` or the same in snake case. */
export const readHttpUsage = (value: unknown): Usage | undefined => {
  const at = (camel: string) =>
    valueAt(value, [camel]) ??
    valueAt(value, [camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)])
  const model = at('model')
  return toUsage({
    inputTokens: toTokens(at('inputTokens')),
    outputTokens: toTokens(at('outputTokens')),
    cachedTokens: toTokens(at('cachedTokens')),
    costUsd: toCost(at('costUsd'), 0),
    model: typeof model === 'string' ? toModel(model) : undefined,
    turns: toTurns(at('turns')),
  })
}
