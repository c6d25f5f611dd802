import { yamlOneOrList, yamlText } from './yaml-text.ts'

/** An agent that is to be written: its keys in their order, each with the comment that stands above it. */
export type NewAgent = {
  readonly name: string
  readonly comment: string
  readonly keys: readonly (readonly [
    key: string,
    value: string | readonly string[] | Readonly<Record<string, string>>,
  ])[]
}

/** The commented lines of an entry of `agents.yaml`, and the value that they stand for. */
export const agentEntry = ({
  name,
  comment,
  keys,
}: NewAgent): { readonly lines: string[]; readonly value: unknown } => ({
  lines: [
    ...comment.split('\n').map((line) => `# ${line}`),
    `${yamlText(name)}:`,
    ...keys.flatMap(([key, value]) => {
      if (typeof value === 'string') return [`  ${key}: ${yamlText(value)}`]
      if (isList(value)) return [`  ${key}: [${value.map((one) => yamlText(one)).join(', ')}]`]
      return [
        `  ${key}:`,
        ...Object.entries(value).map(([one, text]) => `    ${one}: ${yamlOneOrList([text])}`),
      ]
    }),
  ],
  value: Object.fromEntries(keys),
})

const isList = (
  value: readonly string[] | Readonly<Record<string, string>>,
): value is readonly string[] => Array.isArray(value)
