import type { Lesson } from '../../shared/api.ts'
import { isPathName } from '../../shared/templates.ts'
import type { Payload } from './parse.ts'

const maxPaths = 500
const maxDepth = 12
const maxNameLength = 100

/**
 * The dot paths of a payload with the type of what stands there, and no value of it. Of a list its first
 * item is looked at. Names that no dot path can have are left out.
 */
export const shapeOf = (payload: Payload): Pick<Lesson, 'paths' | 'cut'> => {
  const paths: { path: string; type: string }[] = []
  let cut = false
  const look = (value: unknown, names: readonly string[]): void => {
    if (paths.length >= maxPaths || names.length > maxDepth) {
      cut = true
      return
    }
    const inner = entriesOf(value)
    if (names.length > 0 && (inner.length === 0 || Array.isArray(value)))
      paths.push({ path: names.join('.'), type: typeOf(value) })
    for (const [name, item] of inner) look(item, [...names, name])
  }
  look(payload, [])
  return { paths, cut }
}

const entriesOf = (value: unknown): [string, unknown][] => {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.length === 0 ? [] : [['0', value[0]]]
  return Object.entries(value).filter(([name]) => isPathName(name) && name.length <= maxNameLength)
}

const typeOf = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  return typeof value === 'string' ? 'text' : typeof value
}
