import { DoorwardError } from '../errors.ts'
import { type LiquidTemplate, parseLiquid } from '../liquid.ts'
import { each, formatPath, type Path, startsWithEvent } from '../paths.ts'
import { isFixed, parseTemplate, pathsIn, type Template } from '../templates.ts'

/*
 * The templates of an `http` target: whole segments of the path of its URL, and its body. Host, port and query are
 * the owner's alone.
 */

/** One value of an event. */
export type EventValue = string | number | boolean | null

/** What a request to an `http` target takes from its event. */
export type HttpValues = {
  /** In the order of the URL, not yet encoded. */
  readonly segments: readonly string[]
  /** By the names of their paths, without `event`. */
  readonly body: readonly (readonly [names: readonly string[], value: EventValue])[]
}

/** The paths of these values. */
export type HttpReads = { readonly segments: readonly Path[]; readonly body: readonly Path[] }

const isOneValue = (path: Path): boolean => startsWithEvent(path) && !path.includes(each)

/** Behind a slash, and before one or the end of the path. */
const wholeSegments = /^https?:\/\/[^/?#\\\s{}]+(?:\/(?:\{\{[^{}]*\}\}|[^/?#{}]*))*(?:\?[^{}]*)?$/i

/** Parses `url`. Throws `config-invalid` for a value at any other place than a segment of the path. */
export const parseUrlTemplate = (source: string): Template => {
  if (!source.includes('{{')) return { source, parts: [source] }
  const template = parseTemplate(source)
  if (wholeSegments.test(source) && pathsIn(template).every(isOneValue)) return template
  throw new DoorwardError(
    'config-invalid',
    'an event can fill whole segments of the path only, by {{event.<path>}}',
    { hint: 'write https://jira.example.com/issue/{{event.issue.key}}/comment' },
  )
}

/** The URL with these values, or with a word in the place of each. Undefined where there are too few. */
export const toUrl = ({ parts }: Template, segments?: readonly string[]): URL | undefined => {
  let place = 0
  const pieces = parts.map((part) => {
    if (typeof part === 'string') return part
    const value = segments ? segments[place++] : 'x'
    return value === undefined ? undefined : encodeURIComponent(value)
  })
  const text = pieces.join('')
  return !pieces.includes(undefined) && URL.canParse(text) ? new URL(text) : undefined
}

/** What the body of a request can be made of. */
type BodyValues = {
  /** The answer of the agent. */
  readonly result: string
  readonly event_id: string
  readonly webhook: { readonly path: string }
  readonly delivery: { readonly received_at: string }
}

const names = ['result', 'event_id', 'webhook.path', 'delivery.received_at']

const checkName = (path: Path): void => {
  if (names.includes(formatPath(path)) || isOneValue(path)) return
  throw new DoorwardError('config-invalid', `only ${names.join(', ')} and event.<path> can be used`)
}

/** Parses `body_template`. Throws `config-invalid`, also for a body that is not JSON whatever the values are. */
export const parseBodyTemplate = (source: string): LiquidTemplate => {
  const template = parseLiquid(source, checkName)
  if (!isJsonWith(template, 'ok'))
    throw new DoorwardError('config-invalid', 'it does not make JSON: check its quotes and commas')
  if (!isJsonWith(template, 'a "quoted" \\ word\nand a line'))
    throw new DoorwardError(
      'config-invalid',
      'it does not make JSON of a value with quotes and line breaks: write {{ result | json }}, without quotes around it',
    )
  return template
}

const isJsonWith = (template: LiquidTemplate, text: string): boolean => {
  const values = {
    result: text,
    event_id: 'evt_0123456789abcdef01',
    webhook: { path: '/webhook/sample' },
    delivery: { received_at: '2026-01-01T00:00:00.000Z' },
  }
  const body = bodyPaths(template).map((names) => [names, text] as const)
  return toBody(template, values, body) !== undefined
}

/** The names of the values of an event that a body reads, without `event`. */
export const bodyPaths = ({ paths }: LiquidTemplate): string[][] =>
  paths.filter(isOneValue).map((path) => path.slice(1).map(String))

/** The body for these values, or undefined if it is not JSON. Throws `template-failed`. */
export const toBody = (
  template: LiquidTemplate,
  values: BodyValues,
  ofEvent: HttpValues['body'],
): string | undefined => {
  const scope = { ...values, event: toEvent(ofEvent) }
  const pieces = template.render(scope, (value) =>
    typeof value === 'object' ? JSON.stringify(value ?? '') : String(value ?? ''),
  )
  const body = pieces.map(({ text }) => text).join('')
  try {
    JSON.parse(body)
    return body
  } catch {
    return undefined
  }
}

type EventPart = { [name: string]: EventValue | EventPart }

/** An event with these values alone, and no prototype. */
const toEvent = (values: HttpValues['body']): EventPart => {
  const empty = (): EventPart => Object.create(null) as EventPart
  const event = empty()
  for (const [path, value] of values) {
    const last = path.at(-1) ?? ''
    let part = event
    for (const name of path.slice(0, -1)) {
      const inner = part[name]
      part = typeof inner === 'object' && inner !== null ? inner : (part[name] = empty())
    }
    // A value that others are inside of is no single one.
    if (typeof part[last] !== 'object' || part[last] === null) part[last] = value
  }
  return event
}

/** What the requests of an entry read of their event; undefined for nothing. */
export const listReads = ({
  url,
  body_template: body,
}: {
  readonly url?: string | undefined
  readonly body_template?: string | undefined
}): HttpReads | undefined => {
  const template = parseUrlTemplate(url ?? '')
  const inBody = body === undefined ? [] : bodyPaths(parseBodyTemplate(body))
  if (isFixed(template) && inBody.length === 0) return undefined
  return { segments: pathsIn(template), body: inBody.map((names) => ['event', ...names]) }
}
