import { DoorwardError } from '../errors.ts'
import { type LiquidTemplate, parseLiquid } from '../liquid.ts'
import { formatPath, type Path } from '../paths.ts'

/** What the body of a request to an `http` target can be made of. */
export type BodyValues = {
  /** The answer of the agent. */
  readonly result: string
  readonly event_id: string
  readonly webhook: { readonly path: string }
  readonly delivery: { readonly received_at: string }
}

const names = ['result', 'event_id', 'webhook.path', 'delivery.received_at']

const checkName = (path: Path): void => {
  if (names.includes(formatPath(path))) return
  throw new DoorwardError('config-invalid', `only ${names.join(', ')} can be used`)
}

/** Parses `body_template`. Throws `config-invalid`, also for a body that is not JSON whatever the answer is. */
export const parseBodyTemplate = (source: string): LiquidTemplate => {
  const template = parseLiquid(source, checkName)
  if (toBody(template, sample('ok')) === undefined)
    throw new DoorwardError('config-invalid', 'it does not make JSON: check its quotes and commas')
  if (toBody(template, sample('a "quoted" \\ word\nand a line')) === undefined)
    throw new DoorwardError(
      'config-invalid',
      'it does not make JSON of an answer with quotes and line breaks: write {{ result | json }}, without quotes around it',
    )
  return template
}

const sample = (result: string): BodyValues => ({
  result,
  event_id: 'evt_0123456789abcdef01',
  webhook: { path: '/webhook/sample' },
  delivery: { received_at: '2026-01-01T00:00:00.000Z' },
})

/** The body for these values, or undefined if it is not JSON. Throws `template-failed`. */
export const toBody = (template: LiquidTemplate, values: BodyValues): string | undefined => {
  const pieces = template.render(values, (value) =>
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
