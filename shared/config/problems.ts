import { z } from 'zod'
import { type ConfigName, fileSchemas } from './schema.ts'
import { didYouMean } from '../text.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** Keys that no longer exist, by section and name, and what to do instead. */
const droppedKeys: Readonly<Record<string, string>> = {
  'oauth.login_timeout': 'remove it: a login waits for ten minutes',
  'oauth.refresh_ahead': 'remove it: a token is renewed five minutes before it expires',
  'providers.callback_port':
    'remove it, and register the port of oauth.callback_port (53174) at the provider',
  'webhooks.deliver_empty':
    'remove it, and let the prompt ask for a sentence where there is nothing to say: an empty answer is delivered nowhere',
  'workspaces.keep':
    'remove it: a mirror that was not used for 30 days is removed; workspaces.max_size limits all of them',
}

/** The keys that a map may have, by the list of those that are unknown; zod keeps this list in its issue. */
const knownKeys = new WeakMap<readonly string[], readonly string[]>()

/** Our message for an issue of zod, as the `error` of `safeParse`. A message of the schema wins over it. */
export const describeIssue = (issue: z.core.$ZodRawIssue): string => {
  if (issue.code === 'unrecognized_keys') {
    if (issue.inst instanceof z.ZodObject) knownKeys.set(issue.keys, Object.keys(issue.inst.shape))
    return 'unknown key'
  }
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
  const path = toYamlPath(issue.path)
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys.get(issue.keys) ?? []
    return issue.keys.map((key) => toUnknownKey(file, path, key, known))
  }
  if (issue.code === 'invalid_union') return unionProblems(issue, path, name, file, value)
  if (issue.code === 'invalid_key') {
    const reason = issue.issues[0]?.message ?? 'not a name that can be used here'
    return [file.problemAt(path, reason)]
  }
  if (path.length === 0) {
    const known = Object.keys(fileSchemas[name].shape)
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

const toYamlPath = (path: readonly PropertyKey[]): (string | number)[] =>
  path.map((part) => (typeof part === 'symbol' ? String(part) : part))

const toUnknownKey = (
  file: YamlFile,
  path: YamlPath,
  key: string,
  known: readonly string[],
): Problem => {
  const at = [...path, key]
  const instead = droppedKeys[`${path[0]}.${key}`]
  if (instead !== undefined) return file.problemAt(at, 'this key no longer exists', instead)
  const all = known.length === 0 ? undefined : `known: ${known.join(', ')}`
  return file.problemAt(at, 'unknown key', didYouMean(key, known) ?? byWord(key, known) ?? all)
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

/** The value without its unknown keys: the rest can be checked. */
export const withoutUnknownKeys = (
  value: unknown,
  issues: readonly z.core.$ZodIssue[],
): unknown => {
  const copy = structuredClone(value)
  for (const issue of issues)
    if (issue.code === 'unrecognized_keys') {
      const map = getValueAt(copy, toYamlPath(issue.path)) as Record<string, unknown>
      for (const key of issue.keys) delete map[key]
    }
  return copy
}

/** The value at a path of plain maps and lists. Reads own properties only. */
export const getValueAt = (value: unknown, path: YamlPath): unknown =>
  path.reduce<unknown>(
    (node, name) =>
      typeof node === 'object' && node !== null && Object.hasOwn(node, name)
        ? (node as Record<string | number, unknown>)[name]
        : undefined,
    value,
  )
