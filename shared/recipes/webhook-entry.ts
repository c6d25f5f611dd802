import { yamlBlock, yamlOneOrList, yamlScalar, yamlText } from '../config-edit/add-entry.ts'
import type { WebhookPreset } from './presets.ts'
import type { EntryField, NewWebhook } from './new-webhook.ts'
import { reviewFields } from './review-recipe.ts'
import type { WrittenRule } from './rule-recipes.ts'

type Fields = {
  readonly lines: readonly string[]
  readonly value: Readonly<Record<string, unknown>>
}

/** The commented lines of an entry of `webhooks.yaml`, and the value they parse to. */
export const webhookEntry = (
  webhook: NewWebhook,
  preset: WebhookPreset,
): { readonly lines: string[]; readonly value: unknown } => {
  const { path, agent, secretEnv, fields = {} } = webhook
  const { keyField = 'secret_env' } = preset
  const what = toFields(webhook, preset)
  const rule = toWholeRule(webhook) ?? {
    lines: ['- name: review', ...indent([`agent: ${yamlText(agent)}`, ...what.lines], 2)],
    value: { name: 'review', agent, ...what.value },
  }
  const source = preset.feed && { ...preset.feed, ...(webhook.from && { from: webhook.from }) }
  const keys = [
    ...(preset.recipe ? [] : [`agent: ${yamlText(agent)}`]),
    `signature_scheme: ${preset.scheme}`,
    ...(source ? ['# Read by doorward itself: nothing is sent here.', sourceLine(source)] : []),
    ...(keyField === 'none'
      ? []
      : [
          '',
          '# The name of a variable in .env, never the secret itself.',
          `# It is ${preset.secretIs}.`,
          `${keyField}: ${secretEnv}`,
        ]),
    ...Object.entries(fields).flatMap(([name, value]) => fieldLines(name, value)),
    '',
    ...(preset.recipe ? ['rules:', ...indent(rule.lines, 2)] : what.lines),
  ]
  return {
    lines: [
      source
        ? `# ${preset.title}: an agent that answers there.`
        : `# ${preset.title}: the address goes into ${preset.where.split(';', 1)[0]}.`,
      `- path: ${yamlText(path)}`,
      ...indent(keys, 2),
    ],
    value: {
      path,
      ...(!preset.recipe && { agent }),
      signature_scheme: preset.scheme,
      ...(source && { source }),
      ...(keyField !== 'none' && { [keyField]: secretEnv }),
      ...fields,
      ...(preset.recipe ? { rules: [rule.value] } : what.value),
    },
  }
}

const sourceLine = (source: Readonly<Record<string, string | readonly number[]>>): string => {
  const parts = Object.entries(source).map(
    ([key, value]) => `${key}: ${typeof value === 'string' ? value : `[${value.join(', ')}]`}`,
  )
  return `source: { ${parts.join(', ')} }`
}

const fieldLines = (name: string, value: EntryField): string[] => {
  if (typeof value !== 'object') return [`${name}: ${value === true ? 'true' : yamlText(value)}`]
  const lines = Object.entries(value).map(([key, text]) => `  ${yamlText(key)}: ${yamlText(text)}`)
  return [`${name}:`, ...lines]
}

/** The rule of a recipe for an entry that has others or none. */
export const ruleEntry = (
  webhook: NewWebhook,
  preset: WebhookPreset,
  name: string,
): WrittenRule => {
  const whole = toWholeRule(webhook)
  if (whole) return whole
  const { lines, value } = toFields(webhook, preset)
  const { agent } = webhook
  return {
    lines: [
      `- name: ${yamlText(name)}`,
      ...indent(
        [
          `agent: ${yamlText(agent)}`,
          '# The commit shows as a check that it runs, and how it ended.',
          'check: true',
          ...lines,
        ],
        2,
      ),
    ],
    value: { name, agent, check: true, ...value },
  }
}

/** The rule of a recipe, with its brakes. */
const toWholeRule = ({ rule, brakes }: NewWebhook): WrittenRule | undefined => {
  if (!rule || !brakes) return rule
  const lines = [...rule.lines, ...indent(brakes.lines, 2)]
  return { lines, value: { ...rule.value, ...brakes.value } }
}

const indent = (lines: readonly string[], columns: number): string[] =>
  lines.map((line) => (line === '' ? '' : `${' '.repeat(columns)}${line}`))

/** The part that runs, and where its answer goes. */
const toFields = (
  { path, on, filter, deliverTo, prompt, brakes }: NewWebhook,
  preset: WebhookPreset,
): Fields => {
  const conditions = Object.entries(filter)
  const code: Fields = preset.recipe ? reviewFields : { lines: [], value: {} }
  return {
    lines: [
      ...(preset.recipe
        ? []
        : [`# doorward webhook learn ${path} shows what the events of this sender contain.`]),
      ...(on.length > 0 ? [`on: ${yamlOneOrList(on)}`] : []),
      ...(conditions.length > 0
        ? ['filter:', ...conditions.map(([key, values]) => conditionLine(key, values))]
        : preset.filterExample === undefined
          ? []
          : ['# filter:', `#   ${preset.filterExample}`]),
      ...code.lines,
      ...yamlBlock('prompt_template', prompt),
      '',
      preset.recipe
        ? '# A review with comments on lines. It never approves, and requests no changes.'
        : '# doorward help targets lists the others; a list delivers to each.',
      `deliver_to: ${yamlOneOrList(deliverTo)}`,
      ...(brakes?.lines ?? []),
    ],
    value: {
      ...(on.length > 0 && { on: on.length === 1 ? on[0] : on }),
      ...(conditions.length > 0 && {
        filter: Object.fromEntries(conditions.map(([key, values]) => [key, toOneOrList(values)])),
      }),
      ...code.value,
      prompt_template: prompt,
      deliver_to: deliverTo.length === 1 ? deliverTo[0] : deliverTo,
      ...brakes?.value,
    },
  }
}

const conditionLine = (key: string, values: readonly string[]): string =>
  `  ${yamlText(key)}: ${yamlOneOrList(values, yamlScalar)}`

const toOneOrList = (values: readonly string[]): unknown =>
  values.length === 1 ? parseScalar(values[0] ?? '') : values.map(parseScalar)

/** Reads back what `yamlScalar` writes. */
const parseScalar = (text: string): string | number | boolean => {
  if (yamlScalar(text) !== text || yamlText(text) === text) return text
  return text === 'true' ? true : text === 'false' ? false : Number(text)
}
