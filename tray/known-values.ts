/*
 * Values of a JSON document from elsewhere: each as far as it can be used, else undefined or a default.
 */

const maxText = 4000

/** The fields of an object; what is none has none. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, maxText) : undefined

/** A text that is of no use when it is cut. */
export const name = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= maxText ? value : undefined

export const number = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

export const count = (value: unknown): number =>
  Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0

export const yes = (value: unknown, otherwise: boolean): boolean =>
  typeof value === 'boolean' ? value : otherwise

/** A time that a clock can show, ISO 8601. */
export const time = (value: unknown): string | undefined =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
  Number.isFinite(Date.parse(value))
    ? value
    : undefined

export const oneOf = <Known extends string>(
  known: readonly Known[],
  value: unknown,
): Known | undefined => known.find((one) => one === value)

/** The readable items of a list; without a list, none. */
export const listOf = <Item>(
  value: unknown,
  read: (value: unknown) => Item | undefined,
  maxItems: number,
): Item[] =>
  Array.isArray(value)
    ? value.slice(0, maxItems).flatMap((one) => {
        const item = read(one)
        return item === undefined ? [] : [item]
      })
    : []

/** Without the fields that were not said. */
export const said = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Value
