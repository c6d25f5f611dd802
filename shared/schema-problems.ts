import type { z } from 'zod'
import { type ConfigName, agentSchema, fileSchemas } from './config.ts'
import { nearest } from './nearest.ts'
import type { Problem, YamlFile, YamlPath } from './yaml-file.ts'

/** Every problem of one zod issue, in our words, at its place in the file. */
export const problemsOf = (
  issue: z.core.$ZodIssue,
  name: ConfigName,
  file: YamlFile,
  value: unknown,
): Problem[] => {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(name, path, value)
    return issue.keys.map((key) =>
      file.problemAt([...path, key], 'unknown key', nearest(key, known)),
    )
  }
  if (issue.code === 'invalid_union' && 'discriminator' in issue && issue.discriminator) {
    const options =
      'options' in issue && Array.isArray(issue.options) ? issue.options.map(String) : []
    const given = valueUnder(value, path)
    const reason =
      given === undefined ? 'missing' : `unknown ${issue.discriminator} ${JSON.stringify(given)}`
    const hint = typeof given === 'string' ? nearest(given, options) : undefined
    return [file.problemAt(path, reason, hint ?? `one of ${options.join(', ')}`)]
  }
  if (issue.code === 'invalid_value') {
    const options = issue.values.map(String)
    const given = valueUnder(value, path)
    return [
      file.problemAt(
        path,
        given === undefined ? 'missing' : 'not a value it can have',
        `one of ${options.join(', ')}`,
      ),
    ]
  }
  if (issue.code === 'invalid_union') {
    const closestErrors = issue.errors.toSorted((a, b) => depthOf(b) - depthOf(a))[0] ?? []
    const deep = closestErrors.filter((error) => error.path.length > 0)
    if (deep.length > 0)
      return deep.flatMap((error) =>
        problemsOf({ ...error, path: [...issue.path, ...error.path] }, name, file, value),
      )
    const kinds = issue.errors.flatMap((errors) =>
      errors.flatMap((error) => (error.code === 'invalid_type' ? [error.expected] : [])),
    )
    const first = issue.errors.flat().find((error) => error.code !== 'invalid_type')
    return [file.problemAt(path, first ? first.message : `must be ${kinds.join(' or ')}`)]
  }
  if (issue.code === 'invalid_type') {
    const missing = valueUnder(value, path) === undefined
    return [file.problemAt(path, missing ? 'missing' : `must be ${words(issue.expected)}`)]
  }
  if (issue.code === 'invalid_key') {
    const reason = issue.issues[0]?.message ?? 'not a valid name'
    return [file.problemAt(path, reason)]
  }
  return [file.problemAt(path, lowerFirst(issue.message))]
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

const depthOf = (errors: readonly z.core.$ZodIssue[]): number =>
  Math.max(0, ...errors.map((error) => error.path.length))

const words = (type: string): string =>
  ({
    string: 'text',
    array: 'a list',
    object: 'a map',
    record: 'a map',
    boolean: 'true or false',
    int: 'a whole number',
  })[type] ?? `a ${type}`

/** The keys a map at this path may have, read from the schema itself. */
const keysAt = (name: ConfigName, path: YamlPath, value: unknown): string[] => {
  if (name === 'agents' && path.length === 2) {
    const kind = valueUnder(value, [...path, 'kind'])
    const option = agentSchema.options.find((candidate) => candidate.shape.kind.value === kind)
    return Object.keys(option?.shape ?? {})
  }
  let schema: unknown = fileSchemas[name]
  for (const part of path) schema = inside(schema, part)
  const shape = unwrap(schema)
  return hasShape(shape) ? Object.keys(shape.shape) : []
}

const inside = (schema: unknown, part: string | number): unknown => {
  const outer = unwrap(schema)
  if (hasShape(outer)) return outer.shape[String(part)]
  const def = defOf(outer)
  return def?.['element'] ?? def?.['valueType']
}

const unwrap = (schema: unknown): unknown => {
  const inner = defOf(schema)?.['innerType']
  return inner === undefined ? schema : unwrap(inner)
}

const defOf = (schema: unknown): Record<string, unknown> | undefined =>
  typeof schema === 'object' && schema !== null && 'def' in schema
    ? (schema.def as Record<string, unknown>)
    : undefined

const hasShape = (schema: unknown): schema is { shape: Record<string, unknown> } =>
  typeof schema === 'object' && schema !== null && 'shape' in schema

/** The value at a path of plain maps and lists, own names only. */
export const valueUnder = (value: unknown, path: YamlPath): unknown =>
  path.reduce<unknown>(
    (node, name) =>
      typeof node === 'object' && node !== null && Object.hasOwn(node, name)
        ? (node as Record<string | number, unknown>)[name]
        : undefined,
    value,
  )
