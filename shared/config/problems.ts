import type { z } from 'zod'
import { agentSchema } from '../agents/schema.ts'
import { type ConfigName, fileSchemas } from './schema.ts'
import { didYouMean } from '../text.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** Our message for an issue of zod, as the `error` of `safeParse`. A message of the schema wins over it. */
export const describeIssue = (issue: z.core.$ZodRawIssue): string => {
  if (issue.code === 'invalid_type') return mustBe([toKind(issue.expected)], issue.input)
  if (issue.code === 'invalid_value') {
    const { values, input } = issue
    return values.length > maxNamed ? 'not one that is known' : mustBe(values.map(String), input)
  }
  if (issue.code === 'too_small')
    return issue.origin === 'number' ? `must be at least ${issue.minimum}` : 'must not be empty'
  if (issue.code === 'too_big')
    return issue.origin === 'number'
      ? `must be at most ${issue.maximum}`
      : `must not have more than ${issue.maximum} parts`
  return 'not a value that can be used here'
}

/** A longer list hides what is wrong with the value. */
const maxNamed = 15

/** The problems of one zod issue, with their positions in the file. */
export const toProblems = (
  issue: z.core.$ZodIssue,
  name: ConfigName,
  file: YamlFile,
  value: unknown,
): Problem[] => {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(name, path, value)
    const all = known.length === 0 ? undefined : `known: ${known.join(', ')}${pathHint(path)}`
    return issue.keys.map((key) =>
      file.problemAt(
        [...path, key],
        'unknown key',
        didYouMean(key, known) ?? byWord(key, known) ?? all,
      ),
    )
  }
  if (issue.code === 'invalid_union') return unionProblems(issue, path, name, file, value)
  if (issue.code === 'invalid_key') {
    const reason = issue.issues[0]?.message ?? 'not a name that can be used here'
    return [file.problemAt(path, reason)]
  }
  if (path.length === 0) {
    const known = keysAt(name, path, value)
    const hint =
      known.length === 1 ? `the file begins with ${known[0]}:` : `known: ${known.join(', ')}`
    return [file.problemAt(path, issue.message, hint)]
  }
  if (issue.code === 'invalid_value') {
    const given = getValueAt(value, path)
    const meant =
      typeof given === 'string' ? didYouMean(given, issue.values.map(String)) : undefined
    return [file.problemAt(path, issue.message, meant)]
  }
  return [file.problemAt(path, issue.message)]
}

/** For a map in a filter that follows the shape of the payload. */
const pathHint = (path: YamlPath): string => {
  const place = path.lastIndexOf('filter')
  return place > 0 && path.length > place + 1
    ? `; a field inside it is written ${path.at(-1)}.<name>`
    : ''
}

/** `did you mean "secret_env"?` of `secret:` or `secrets:`; keys have several words. */
const byWord = (given: string, known: readonly string[]): string | undefined => {
  const word = given.toLowerCase().replace(/s$/, '')
  const meant = known.filter((name) => name.split('_').includes(word)).map((name) => `"${name}"`)
  return meant.length === 0 ? undefined : `did you mean ${meant.join(' or ')}?`
}

type UnionIssue = Extract<z.core.$ZodIssue, { code: 'invalid_union' }>

const unionProblems = (
  issue: UnionIssue,
  path: YamlPath,
  name: ConfigName,
  file: YamlFile,
  value: unknown,
): Problem[] => {
  const given = getValueAt(value, path)
  // A map among the branches is what was meant by a map.
  const unknownKeys = issue.errors.flat().find((error) => error.code === 'unrecognized_keys')
  if (unknownKeys) return toProblems({ ...unknownKeys, path: issue.path }, name, file, value)
  if ('discriminator' in issue && issue.discriminator) {
    const options =
      'options' in issue && Array.isArray(issue.options) ? issue.options.map(String) : []
    if (typeof given !== 'string') return [file.problemAt(path, mustBe(options, given))]
    return [
      file.problemAt(
        path,
        `unknown ${issue.discriminator} "${given}"`,
        didYouMean(given, options) ?? `one of ${options.join(', ')}`,
      ),
    ]
  }
  // A problem inside a list or map says more than that another type was possible.
  const inside = issue.errors.flat().filter((error) => error.path.length > 0)
  if (inside.length > 0)
    return inside.flatMap((error) =>
      toProblems({ ...error, path: [...issue.path, ...error.path] }, name, file, value),
    )
  const branches = listLeaves(issue)
  const own = branches.find((error) => error.code !== 'invalid_type')
  const kinds = branches.flatMap((error) =>
    error.code === 'invalid_type' ? [toKind(error.expected)] : [],
  )
  const hint =
    given === null && path.includes('filter') && typeof path.at(-1) === 'string'
      ? 'write { exists: false } for null or a missing value'
      : undefined
  return [file.problemAt(path, own?.message ?? mustBe(kinds, given), hint)]
}

/** The issues of all branches of a union, also of nested unions. */
const listLeaves = (issue: UnionIssue): z.core.$ZodIssue[] =>
  issue.errors
    .flat()
    .flatMap((error) => (error.code === 'invalid_union' ? listLeaves(error) : [error]))

const mustBe = (kinds: readonly string[], given: unknown): string => {
  const last = kinds.at(-1) ?? ''
  const all = kinds.length > 1 ? `${kinds.slice(0, -1).join(', ')} or ${last}` : last
  if (given === undefined) return kinds.length > 1 ? `missing, must be ${all}` : 'missing'
  return given === null ? `has no value, must be ${all}` : `must be ${all}`
}

const toKind = (type: string): string =>
  ({
    string: 'text',
    number: 'a number',
    int: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'a map',
    record: 'a map',
  })[type] ?? `a ${type}`

/** The keys that the schema allows for a map at this path. */
const keysAt = (name: ConfigName, path: YamlPath, value: unknown): string[] => {
  if (name === 'agents' && path.length === 2) {
    const kind = getValueAt(value, [...path, 'kind'])
    const option = agentSchema.options.find((candidate) => candidate.shape.kind.value === kind)
    return Object.keys(option?.shape ?? {})
  }
  let schemas: unknown[] = unwrap(fileSchemas[name])
  for (const part of path) schemas = schemas.map((schema) => inside(schema, part)).flatMap(unwrap)
  return schemas.flatMap((schema) => (hasShape(schema) ? Object.keys(schema.shape) : []))
}

const inside = (schema: unknown, part: string | number): unknown => {
  const def = getDefinition(schema)
  const ofKey = hasShape(schema) ? schema.shape[String(part)] : undefined
  return ofKey ?? def?.['element'] ?? def?.['valueType'] ?? def?.['catchall']
}

/** The schema without what wraps it; all branches of a union. */
const unwrap = (schema: unknown): unknown[] => {
  const { innerType, options, getter } = getDefinition(schema) ?? {}
  if (typeof getter === 'function') return unwrap(getter())
  if (Array.isArray(options)) return options.flatMap(unwrap)
  return innerType === undefined ? [schema] : unwrap(innerType)
}

const getDefinition = (schema: unknown): Record<string, unknown> | undefined =>
  typeof schema === 'object' && schema !== null && 'def' in schema
    ? (schema.def as Record<string, unknown>)
    : undefined

const hasShape = (schema: unknown): schema is { shape: Record<string, unknown> } =>
  typeof schema === 'object' && schema !== null && 'shape' in schema

/** The value at a path of plain maps and lists. Reads own properties only. */
export const getValueAt = (value: unknown, path: YamlPath): unknown =>
  path.reduce<unknown>(
    (node, name) =>
      typeof node === 'object' && node !== null && Object.hasOwn(node, name)
        ? (node as Record<string | number, unknown>)[name]
        : undefined,
    value,
  )
