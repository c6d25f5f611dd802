import { headerNameForm } from './config/name-forms.ts'
import { DoorwardError } from './errors.ts'
import { type LiquidTemplate, parseLiquid } from './liquid.ts'
import { formatPath, parsePath, type Path } from './paths.ts'
import { presetSchemes } from './signatures/presets.ts'
import { didYouMean } from './text.ts'

/**
 * A parsed template. Its paths begin with `event`, `headers`, `webhook` or `delivery`, in a schedule with `schedule`,
 * in a prompt also with `context`, and in a workspace also with `pull`.
 */
export type Template = {
  readonly source: string
  readonly parts: readonly (string | Path)[]
}

/** A template of a prompt: with tags or filters it is Liquid. */
export type PromptTemplate = Template | LiquidTemplate

/** The names that `{{context.<name>}}` of a prompt can have. */
export const contextNames = [
  'diff',
  'files',
  'commits',
  'failed-logs',
  'comments',
  'reviews',
] as const
export type ContextName = (typeof contextNames)[number]

/** True for a template without placeholders. */
export const isFixed = ({ parts }: Template): boolean =>
  parts.every((part) => typeof part === 'string')

/** The paths of the values that a template reads. */
export const pathsIn = (template: PromptTemplate): readonly Path[] =>
  'parts' in template ? template.parts.filter((part) => typeof part !== 'string') : template.paths

/** The names of the headers that these paths read, as they are written there. */
export const headerNamesIn = (paths: readonly Path[]): string[] => [
  ...new Set(
    paths.flatMap(([root, name]) => (root === 'headers' && typeof name === 'string' ? [name] : [])),
  ),
]

const rawBlock = /\{% *raw *%\}(?<raw>[^]*?)\{% *endraw *%\}/
const placeholder = /\{\{(?<expression>[^{}]*)\}\}/
const anyPart = new RegExp(`${rawBlock.source}|${placeholder.source}`, 'g')
/** An output of Liquid, which may have braces in its quotes. */
const output = /\{\{(?:(?!\{\{|\}\})[^])*\}\}/g

/** The text of a template outside its placeholders, tags and `{% raw %}`. */
export const literalText = (source: string): string =>
  source
    .replaceAll(new RegExp(rawBlock, 'g'), ' ')
    .replaceAll(output, ' ')
    .replaceAll(/\{%[^]*?%\}/g, ' ')

/** Parses the template of a prompt. Throws `config-invalid`. */
export const parsePrompt = (source: string): PromptTemplate =>
  isLiquid(source)
    ? parseLiquid(source, checkScopePath, roots, toContextPath)
    : parseTemplates(source, toContextPath)

/** The path of `context.diff`, alone in its braces. */
const toContextPath = (text: string): Path | undefined => {
  const name = contextNames.find((known) => text === `context.${known}`)
  return name && ['context', name]
}

/** True for a template with a tag other than `{% raw %}`, or with a filter. */
const isLiquid = (source: string): boolean => {
  const rest = source.replaceAll(new RegExp(rawBlock, 'g'), '')
  return rest.includes('{%') || (rest.match(output) ?? []).some(hasFilter)
}

const hasFilter = (text: string): boolean =>
  text.replaceAll(/\["[^"]*"\]|\['[^']*'\]/g, '').includes('|')

/**
 * Parses `{{event}}`, `{{event.<path>}}` and the few other values of a delivery; other text is literal, as is
 * everything between `{% raw %}` and `{% endraw %}`. Throws `config-invalid` with all other names between
 * double braces.
 */
export const parseTemplate = (source: string): Template => parseTemplates(source, () => undefined)

/** The same for the key of a session, which can also read `{{subject.key}}`. Throws `config-invalid`. */
export const parseSessionKey = (source: string): Template =>
  parseTemplates(source, (text) => (text === 'subject.key' ? ['subject', 'key'] : undefined))

/** The same with `{{pull.head.sha}}` and `{{pull.base.sha}}`, the commits of the pull request of an event. */
export const parsePullTemplate = (source: string): Template =>
  parseTemplates(source, (text) => pullPaths.find((path) => formatPath(path) === text))

const pullPaths: readonly Path[] = ['head', 'base'].map((side) => ['pull', side, 'sha'])

/** The names that `{{context.<name>}}` of a prompt reads. */
export const contextsIn = (prompt: PromptTemplate): ContextName[] =>
  contextNames.filter((known) =>
    pathsIn(prompt).some(([root, name]) => root === 'context' && name === known),
  )

const parseTemplates = (
  source: string,
  toOwnPath: (expression: string) => Path | undefined,
): Template => {
  if (source.replaceAll(anyPart, '').includes('{%'))
    throw new DoorwardError('config-invalid', 'only prompt_template can have tags such as {% if %}')
  const parts: (string | Path)[] = []
  const wrong = new Map<string, DoorwardError>()
  let end = 0
  for (const match of source.matchAll(anyPart)) {
    if (match.index > end) parts.push(source.slice(end, match.index))
    end = match.index + match[0].length
    const { raw, expression = '' } = match.groups ?? {}
    if (raw !== undefined) {
      parts.push(raw)
      continue
    }
    try {
      const isAfterDollar = source[match.index - 1] === '$'
      parts.push(
        toOwnPath(expression.trim()) ??
          parsePlaceholder(expression.trim(), `${isAfterDollar ? '$' : ''}${match[0]}`),
      )
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      wrong.set(`{{${expression.trim()}}}`, error)
    }
  }
  if (end < source.length) parts.push(source.slice(end))
  const [first] = wrong.values()
  if (first) {
    const faults = [...wrong].map(([name, { message }]) => `${name}: ${message}`)
    throw new DoorwardError('config-invalid', faults.join('; '), { hint: first.hint })
  }
  return { source, parts }
}

const roots = ['event', 'headers', 'webhook', 'delivery', 'context']

/** The error for a name that is not the name of a value, where literal braces may be meant. */
const unknownName = (expression: string, written = `{{${expression}}}`): DoorwardError =>
  new DoorwardError(
    'config-invalid',
    `only event, event.<path>, headers.<name>, ${[...fixedPaths].join(', ')} can be used`,
    {
      hint:
        didYouMean(/^[\w-]*/.exec(expression)?.[0] ?? '', roots) ??
        `for braces that stay as they are write {% raw %}${written}{% endraw %}`,
    },
  )

/** The error for a context at a place where it cannot stand. */
const unknownContext = (name: string): DoorwardError =>
  (contextNames as readonly string[]).includes(name)
    ? new DoorwardError(
        'config-invalid',
        `it can only stand in prompt_template, as {{context.${name}}}: no filter, condition or variable can read it`,
      )
    : new DoorwardError(
        'config-invalid',
        `there is no such context: ${contextNames.join(', ')} can be used`,
        { hint: didYouMean(name, contextNames) },
      )

const parsePlaceholder = (expression: string, written: string): Path => {
  if (hasFilter(expression))
    throw new DoorwardError('config-invalid', 'only prompt_template can have filters')
  const [, context] = /^context\.([\w-]+)/.exec(expression) ?? []
  if (context !== undefined) throw unknownContext(context)
  if (!/^(event|headers|webhook|delivery|schedule)([.[]|$)/.test(expression))
    throw unknownName(expression, written)
  const path = parsePath(expression)
  checkScopePath(path)
  const [root, name] = path
  return root === 'headers' && typeof name === 'string' ? [root, name.toLowerCase()] : path
}

/** Throws `config-invalid` for a path to a value that a delivery does not have. */
export const checkScopePath = (path: Path): void => {
  const [root, name = ''] = path
  if (root === 'event' || fixedPaths.has(formatPath(path))) return
  if (schedulePaths.includes(formatPath(path))) return
  if (root === 'context') throw unknownContext(String(name))
  if (root !== 'headers') throw unknownName(formatPath(path))
  if (path.length !== 2 || typeof name !== 'string' || !headerNameForm.test(name))
    throw new DoorwardError('config-invalid', 'write headers.<name>, the name of one header')
  if (secretHeaders.has(name.toLowerCase()))
    throw new DoorwardError('config-invalid', 'this header holds a secret or a signature')
}

/** Headers with a secret or a signature, which belong in no prompt. */
const secretHeaders = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  ...presetSchemes.flatMap(({ forms }) => forms.map(({ header }) => header)),
])

/** The values of a schedule, in its own templates. */
export const schedulePaths: readonly string[] = [
  'schedule.name',
  'schedule.due_at',
  'schedule.previous_at',
]

const fixedPaths = new Set(['webhook.path', 'delivery.id', 'delivery.received_at'])
