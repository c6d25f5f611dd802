import type { WebhookPreset } from './webhook-presets.ts'
import { yamlBlock, yamlOneOrList, yamlScalar, yamlText } from './yaml-text.ts'

/** A webhook that is to be written. */
export type NewWebhook = {
  readonly path: string
  readonly agent: string
  /** Dot path to the values of which one has to be there. */
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly deliverTo: readonly string[]
  readonly prompt: string
  readonly secretEnv: string
}

/** The commented lines of an entry of `webhooks.yaml`, and the value that they stand for. */
export const webhookEntry = (
  { path, agent, filter, deliverTo, prompt, secretEnv }: NewWebhook,
  preset: WebhookPreset,
): { readonly lines: string[]; readonly value: unknown } => {
  const conditions = Object.entries(filter)
  const keys = [
    `agent: ${yamlText(agent)}`,
    `signature_scheme: ${preset.scheme}`,
    '',
    '# The name of a variable in .env, never the secret itself.',
    `# It is ${preset.secretIs}.`,
    `secret_env: ${secretEnv}`,
    '',
    `# doorward webhook learn ${path} shows what the events of this sender hold.`,
    ...(conditions.length > 0
      ? ['filter:', ...conditions.map(([key, values]) => conditionLine(key, values))]
      : ['# filter:', `#   ${preset.filterExample ?? 'action: [opened, reopened]'}`]),
    ...yamlBlock('prompt_template', prompt),
    '',
    '# doorward help targets names the others; a list delivers to each.',
    `deliver_to: ${yamlOneOrList(deliverTo)}`,
  ]
  return {
    lines: [
      `# ${preset.title}: the address goes into ${preset.where.split(';', 1)[0]}.`,
      `- path: ${yamlText(path)}`,
      ...keys.map((line) => (line === '' ? '' : `  ${line}`)),
    ],
    value: {
      path,
      agent,
      signature_scheme: preset.scheme,
      secret_env: secretEnv,
      ...(conditions.length > 0 && {
        filter: Object.fromEntries(conditions.map(([key, values]) => [key, valueOf(values)])),
      }),
      prompt_template: prompt,
      deliver_to: deliverTo.length === 1 ? deliverTo[0] : deliverTo,
    },
  }
}

const conditionLine = (key: string, values: readonly string[]): string =>
  `  ${yamlText(key)}: ${yamlOneOrList(values, yamlScalar)}`

const valueOf = (values: readonly string[]): unknown =>
  values.length === 1 ? scalarOf(values[0] ?? '') : values.map(scalarOf)

/** As `yamlScalar` is read back. */
const scalarOf = (text: string): string | number | boolean => {
  if (yamlScalar(text) !== text || yamlText(text) === text) return text
  return text === 'true' ? true : text === 'false' ? false : Number(text)
}
