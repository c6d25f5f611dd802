import type { Explain, Explanation, RuleExplanation } from '../../../shared/api/explain.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { readSample } from '../../../shared/samples/samples.ts'
import { presetSchemes } from '../../../shared/signatures/presets.ts'
import { toPlainLine, toPlainText } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { type Cell, type Field, printFields, printSection } from '../../terminal/table.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { readTextInput } from '../../terminal/input.ts'
import type { Style, Terminal } from '../../terminal/terminal.ts'

export type ExplainOptions = { readonly sample?: string; readonly header?: readonly string[] }

/**
 * Prints what would happen to a delivery, and why, without running anything. Throws `webhook-not-found`,
 * or the reason why the daemon cannot read the payload.
 */
export const explainWebhook = async (
  context: Context,
  [path = '', file]: (string | undefined)[],
  options: ExplainOptions,
): Promise<void> => {
  const { terminal } = context
  const { headers: ofSample, payload } = await readPayload(file, options.sample)
  const headers = { ...ofSample, ...parseHeaders(options.header ?? []) }
  const request: Explain = { path, headers, payload }
  const explanation = await withDaemon(context, (client) =>
    client.post<Explanation>('/webhooks/explain', request),
  )
  if (terminal.json) terminal.printJson(explanation)
  else printExplanation(explanation, terminal)
}

const readPayload = async (file?: string, sample?: string): Promise<Omit<Explain, 'path'>> => {
  if (sample !== undefined) {
    if (file !== undefined)
      throw new DoorwardError('usage', 'a file and --sample exclude each other')
    const { sender, event, contentType, body } = readSample(sample)
    const header = presetSchemes.find(({ name }) => name === sender)?.event?.header
    const headers = {
      'content-type': contentType,
      ...(header !== undefined && { [header]: event }),
    }
    return { headers, payload: body.toString('utf8') }
  }
  if (file === undefined)
    throw new DoorwardError('usage', 'there is no payload to explain', {
      hint: 'name a file, - for standard input, or --sample github:pull_request.opened',
    })
  return { payload: await readTextInput(file) }
}

/** Parses `Name: value` as curl does; the same name twice is a header that was sent twice. */
const parseHeaders = (lines: readonly string[]): Record<string, string[]> => {
  const headers: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const line of lines) {
    const [, name, value] = /^([^\s:]+):\s*(.*)$/s.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new DoorwardError('usage', 'a header is written as Name: value', {
        hint: "--header 'X-Hub-Signature-256: sha256=…'",
      })
    const key = name.toLowerCase()
    headers[key] = [...(headers[key] ?? []), value]
  }
  return { ...headers }
}

const printExplanation = (explanation: Explanation, terminal: Terminal): void => {
  const { webhook, signature, rules } = explanation
  const about: Field[] = [
    ['webhook', webhook],
    ['signature', signatureCell(signature, terminal)],
  ]
  const outcome: Field = ['outcome', describeOutcome(explanation)]
  if (!rules) {
    const [match, then] = [matchFields(explanation, terminal), runFields(explanation, terminal)]
    printFields([...about, ...match, outcome, ...then], terminal)
    printSection('prompt', markedPrompt(explanation, terminal), terminal)
    return
  }
  printFields([...about, outcome], terminal)
  for (const rule of rules) {
    const mark = rule.matches ? terminal.paint('green', '✓') : terminal.paint('yellow', '-')
    terminal.print(`\n${mark} ${terminal.paint('bold', `rule ${toPlainLine(rule.rule ?? '')}`)}`)
    const fields = matchFields(rule, terminal)
    printFields(rule.matches ? [...fields, ...runFields(rule, terminal)] : fields, terminal)
    if (rule.matches) printSection('prompt', markedPrompt(rule, terminal), terminal)
  }
}

/** The value with which the delivery is compared. */
const matchFields = (
  { isPaused, on, filter, mention }: RuleExplanation,
  terminal: Terminal,
): Field[] => [
  ...optional(isPaused === true, ['', 'it is paused']),
  ...(on ? [['on', eventCell(on, terminal)] as const] : []),
  ...filter.map((condition, index): Field => [
    index === 0 ? 'filter' : '',
    conditionCell(condition, terminal),
  ]),
  ...optional(filter.length === 0 && !mention, [
    'filter',
    on ? 'none: every such event matches' : 'none: every delivery matches',
  ]),
  ...(mention ? [['mention', mentionCell(mention, terminal)] as const] : []),
]

/** The part that runs, and where its answer goes. */
const runFields = (rule: RuleExplanation, terminal: Terminal): Field[] => {
  const { agent, workspace, targets, coalesce, maxRuns, overBudget } = rule
  const empty = emptyPaths(rule)
  return [
    ...optional(rule.promptFault !== undefined, ['', failedCell(rule.promptFault ?? '', terminal)]),
    ['agent', `${agent.name} (${agent.kind})${agent.argv ? `: ${argvText(agent.argv)}` : ''}`],
    ...optional(agent.detail !== undefined, ['', failedCell(agent.detail ?? '', terminal)]),
    ...optional(agent.unconfined !== undefined, ['', doubtCell(agent.unconfined ?? '', terminal)]),
    ...(agent.sandbox === undefined ? [] : [['sandbox', agent.sandbox] as const]),
    ...(workspace ? [['workspace', workspaceCell(workspace, terminal)] as const] : []),
    ...(coalesce ? [['coalesce', coalesceCell(coalesce, terminal)] as const] : []),
    ...(maxRuns ? [['max_runs', maxRunsCell(maxRuns, terminal)] as const] : []),
    ...(overBudget === undefined ? [] : [['budget', failedCell(overBudget, terminal)] as const]),
    ...targets.map(({ target, parts, detail }, index): Field => [
      index === 0 ? 'targets' : '',
      detail === undefined
        ? `${target}: ${partsText(parts)}`
        : failedCell(`${target}: ${detail}`, terminal),
    ]),
    ...optional(targets.length === 0, ['targets', 'none']),
    ...optional(empty.length > 0, [
      'missing',
      doubtCell(
        `${empty.join(', ')} of the prompt: missing, null or empty in this payload`,
        terminal,
      ),
    ]),
  ]
}

const workspaceCell = (
  { repo, ref, base, detail }: NonNullable<RuleExplanation['workspace']>,
  terminal: Terminal,
): Cell => {
  const text = `${repo} at ${ref}${base === undefined ? '' : `, base ${base}`}`
  return detail === undefined ? text : failedCell(detail, terminal)
}

const coalesceCell = (
  { key, detail }: NonNullable<RuleExplanation['coalesce']>,
  terminal: Terminal,
): Cell => (key === undefined ? doubtCell(detail ?? '', terminal) : `the newest of ${key} runs`)

const maxRunsCell = (
  { limit, left, isUsedUp }: NonNullable<RuleExplanation['maxRuns']>,
  terminal: Terminal,
): Cell => (isUsedUp ? failedCell(`${limit} is used up`, terminal) : `${limit}, ${left} left`)

const eventCell = (
  { expected, actual, matches }: NonNullable<RuleExplanation['on']>,
  terminal: Terminal,
): Cell =>
  styled(
    matches ? 'green' : 'yellow',
    `${matches ? '✓' : '✗'} the event is ${actual ?? 'not named'}, expected ${expected.join(' or ')}`,
    terminal,
  )

const mentionCell = (
  { expected, detail }: NonNullable<RuleExplanation['mention']>,
  terminal: Terminal,
): Cell =>
  styled(
    detail === undefined ? 'green' : 'yellow',
    detail === undefined ? `✓ it names ${expected}` : `✗ ${detail}`,
    terminal,
  )

/** A value in a colour. */
const styled = (style: Style, text: string, terminal: Terminal): Cell => ({
  text,
  paint: (shown) => terminal.paint(style, shown),
})

const optional = (isThere: boolean, field: Field): Field[] => (isThere ? [field] : [])

const signatureWords = {
  valid: ['✓ valid', 'green'],
  invalid: ['✗ invalid', 'red'],
  'not-given': ['- not given', 'yellow'],
  'not-required': ['! not required', 'yellow'],
} as const

const signatureCell = (
  { scheme, result, detail }: Explanation['signature'],
  terminal: Terminal,
): Cell => {
  const [words, style] = signatureWords[result]
  return styled(style, `${words} (${scheme})${detail === undefined ? '' : `: ${detail}`}`, terminal)
}

const conditionCell = (condition: Explanation['filter'][number], terminal: Terminal): Cell => {
  const { path, matches, hint, within } = condition
  const actual = condition.actual === null ? 'missing or null' : JSON.stringify(condition.actual)
  const isGroup = path === 'any' || path === 'none'
  const text = [
    within === undefined ? '' : `${'  '.repeat(within.split('].').length)}${within} `,
    `${matches ? '✓' : '✗'} ${path}${isGroup ? ':' : ` is ${actual},`}`,
    ` expected ${condition.condition}`,
    hint === undefined ? '' : `; ${hint}`,
  ].join('')
  return styled(matches ? 'green' : 'yellow', text, terminal)
}

/** The placeholders that were replaced by nothing, each once. */
const emptyPaths = ({ substituted }: RuleExplanation): string[] => [
  ...new Set(
    substituted.filter(({ start, end }) => start === end).map(({ path }) => `{{${path}}}`),
  ),
]

const doubtCell = (detail: string, terminal: Terminal): Cell =>
  styled('yellow', `! ${detail}`, terminal)

const failedCell = (detail: string, terminal: Terminal): Cell =>
  styled('red', `✗ ${detail}`, terminal)

const describeOutcome = (explanation: Explanation): string => {
  const { signature, matches, handshake, ownComment, duplicateOf, agent, targets, rules } =
    explanation
  if (signature.result === 'invalid') return 'it would be refused with 401, and no agent would run'
  const then = signature.result === 'not-given' ? 'once it is signed, ' : ''
  if (handshake !== undefined) return `${then}it would be answered as a ${handshake}`
  if (ownComment) return `${then}it would be ignored: it is about what doorward itself wrote`
  if (duplicateOf)
    return `${then}it would not run again: it was accepted before${duplicateOf.map((id) => `, as ${id}`).join('')}`
  const matching = (rules ?? []).filter((rule) => rule.matches && !isUsedUp(rule))
  if (matching.length > 0) return `${then}${describeRuns(matching)}`
  if (matches && isUsedUp(explanation))
    return `${then}it would be filtered out: ${explanation.overBudget ?? 'max_runs is used up'}`
  if (matches && explanation.promptFault !== undefined)
    return `${then}it would be refused with 422: its prompt cannot be made`
  if (matches && agent.detail !== undefined)
    return `${then}it would be accepted and then fail: the agent cannot run here`
  return matches
    ? `${then}the agent would run${describeFailures(targets)}`
    : `${then}it would be filtered out${rules ? ': no rule matches' : ''}`
}

const isUsedUp = ({ maxRuns, overBudget }: RuleExplanation): boolean =>
  maxRuns?.isUsedUp === true || overBudget !== undefined

/** `the rules review and triage would run` */
const describeRuns = (rules: readonly RuleExplanation[]): string => {
  const names = rules.map(({ rule = '' }) => rule)
  const [last = '', ...before] = names.toReversed()
  const all = before.length === 0 ? last : `${before.toReversed().join(', ')} and ${last}`
  return `the ${names.length === 1 ? 'rule' : 'rules'} ${all} would run`
}

const describeFailures = (targets: Explanation['targets']): string => {
  const failing = targets.filter(({ detail }) => detail !== undefined).length
  const all = targets.length === 1 ? '1 target' : `${targets.length} targets`
  return failing === 0 ? '' : `, and ${failing} of ${all} would get nothing`
}

const argvText = (argv: readonly string[]): string =>
  argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ')

/** How an answer as long as the prompt would be split. */
const partsText = (parts: readonly string[]): string =>
  parts.length === 1
    ? 'one message'
    : `${parts.length} messages of ${parts.map(({ length }) => length).join(', ')} characters, for an answer as long as the prompt`

/** Marks what came from the payload: bold with colour, in brackets without. */
const markedPrompt = (
  { prompt, substituted }: Pick<Explanation, 'prompt' | 'substituted'>,
  terminal: Terminal,
): string => {
  const canPaint = terminal.paint('bold', 'x') !== 'x'
  const mark = (text: string) =>
    canPaint ? terminal.paint(['bold', 'cyan'], toPlainText(text)) : `[${toPlainText(text)}]`
  let end = 0
  const pieces = substituted.map((span) => {
    const before = toPlainText(prompt.slice(end, span.start))
    end = span.end
    return before + mark(prompt.slice(span.start, span.end))
  })
  return pieces.join('') + toPlainText(prompt.slice(end))
}
