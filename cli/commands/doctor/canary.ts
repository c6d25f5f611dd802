import { type Dirent, createReadStream, existsSync } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { agentClis, cliKinds } from '../../../shared/agents/clis.ts'
import type { EventDetail } from '../../../shared/api/api.ts'
import type { Rule } from '../../../shared/config/rule.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import type { Filter, ValueCondition } from '../../../shared/filter/conditions.ts'
import { expandTilde, type Home } from '../../../shared/home/home.ts'
import { each, type Path } from '../../../shared/paths.ts'
import { targetPaths } from '../../../shared/targets/targets.ts'
import { pathsIn } from '../../../shared/templates.ts'

/*
 * The made-up event of the privacy check, and the search for it.
 */

/** The first event of `on`: its name for the header of the sender, and what its body says of it. */
export const toKind = ({ event: places }: Webhook['scheme'], { on }: Rule) => {
  const [first] = on ?? []
  if (first === undefined || !places) return undefined
  const name = first.replace(/\.\*$/, '')
  const [event = name, ...action] = places.action === undefined ? [name] : name.split('.')
  const field = (path: string | undefined, value: string) =>
    path === undefined || value === '' ? [] : [[path.split('.'), value] as const]
  return {
    event,
    fields: [...field(places.field, event), ...field(places.action, action.join('.'))],
  }
}

type Node = { [name: string]: unknown }

/**
 * A payload that passes the filter of a rule and puts the canary into its prompt, in every value of the
 * template. Values that a target or the key of a session uses are plain words.
 */
export const canaryPayload = (
  rule: Rule,
  canary: string,
  kind: readonly (readonly [path: Path, value: string])[] = [],
): Node => {
  const payload: Node = { doorward_canary: canary }
  for (const path of inPayload(pathsIn(rule.prompt))) put(payload, path, canary)
  const sessionPaths = rule.session ? pathsIn(rule.session.key) : []
  for (const path of inPayload([...rule.targets.flatMap(targetPaths), ...sessionPaths]))
    put(payload, path, 'privacy-check')
  for (const [path, value] of kind) put(payload, path, value)
  for (const condition of conditionsToMeet(rule.filter))
    for (const path of inPayload([condition.path])) put(payload, path, sampleValue(condition))
  return payload
}

/** Headers that pass the filter of a rule. */
export const canaryHeaders = (rule: Rule): Record<string, string> =>
  Object.fromEntries(
    conditionsToMeet(rule.filter).flatMap((condition) => {
      const [root, name] = condition.path
      const value = sampleValue(condition)
      return root === 'headers' && typeof name === 'string' && value !== null
        ? [[name, String(value)]]
        : []
    }),
  )

/** Conditions that make a filter match together. */
const conditionsToMeet = (filter: Filter): ValueCondition[] =>
  filter.flatMap((condition) => {
    if (condition.kind === 'value') return [condition]
    return condition.kind === 'any' ? conditionsToMeet(condition.filters[0] ?? []) : []
  })

/** A value that a condition accepts, as far as one can be made from it. */
const sampleValue = ({ tests }: ValueCondition): unknown => {
  for (const { operator, expected, isNegated } of tests) {
    const [first = ''] = expected
    if (operator === 'exists' && isNegated) return null
    if (isNegated || operator === 'exists') continue
    if (operator === 'above') return Number(first) + 1
    if (operator === 'below') return Number(first) - 1
    if (operator === 'glob') return first.replaceAll(/[*?]+/g, 'x')
    return operator === 'regex' ? first.replaceAll(/[\\^$]/g, '') : first
  }
  return 'privacy-check'
}

const inPayload = (paths: readonly Path[]): Path[] =>
  paths.filter(([root, ...path]) => root === 'event' && path.length > 0).map(([, ...path]) => path)

/** Lists are maps with numbers as keys here, so that paths work for both, but for those of a `[*]`. */
const put = (payload: Node, path: Path, value: unknown): void => {
  let node = payload
  const names = path.map((name) => (name === each ? '0' : name))
  for (const [position, name] of names.slice(0, -1).entries()) {
    const next = Object.hasOwn(node, name) ? node[name] : undefined
    const isList = path[position + 1] === each
    // A template may use both a value and a field below it.
    const inner =
      typeof next === 'object' && next !== null
        ? (next as Node)
        : makeNode(isList, next === undefined ? {} : { text: next })
    node[name] = inner
    node = inner
  }
  const last = names.at(-1) ?? ''
  if (typeof node[last] !== 'object' || node[last] === null) node[last] = value
}

const makeNode = (isList: boolean, map: Node): Node => (isList ? Object.assign([], map) : map)

/** The folders where an event could leave files: our home, those of the agents, temporary ones. */
export const listPlaces = (home: Home, webhooks: readonly Webhook[]): string[] => {
  const agents = webhooks.flatMap(({ rules }) => rules.map(({ agent }) => agent))
  const own = agents.map((agent) =>
    Object.entries('env' in agent ? (agent.env ?? {}) : {}).filter(
      ([, value]) => !/^(env|oauth):/.test(value),
    ),
  )
  const states = [[], ...own].flatMap((entries) => {
    const env = { ...process.env, ...Object.fromEntries(entries) }
    return cliKinds.flatMap((kind) => agentClis[kind].stateFolders(env))
  })
  const folders = agents.flatMap((agent) =>
    'cwd' in agent && agent.cwd ? [resolve(home.root, expandTilde(agent.cwd))] : [],
  )
  const all = new Set([home.root, ...states, ...folders, tmpdir(), '/dev/shm'])
  return [...all].filter((place) => existsSync(place))
}

/** The files that targets wrote, by their real paths. */
export const listWritten = async (home: Home, events: readonly EventDetail[]) => {
  const written = new Map<string, string>()
  for (const { target } of events.flatMap(({ targets }) => targets))
    if (target.startsWith('file:')) {
      const path = resolve(home.root, expandTilde(target.slice('file:'.length)))
      written.set(await realpath(path).catch(() => path), target)
    }
  return written
}

export type Found = {
  /** The files that contain the text. */
  readonly paths: readonly string[]
  /** How many changed files were searched, and how many could not be read. */
  readonly searched: number
  readonly unreadable: number
}

/**
 * Searches folders (and files) for files that changed since a time and contain an ASCII text, as UTF-8 or
 * UTF-16. Follows no link, and cannot search compressed or encrypted files.
 */
export const findText = async (
  roots: readonly string[],
  text: string,
  sinceMs: number,
): Promise<Found> => {
  const needles = [Buffer.from(text, 'utf8'), Buffer.from(text, 'utf16le')]
  const seen = new Set<string>()
  const paths: string[] = []
  let searched = 0
  let unreadable = 0

  const look = async (path: string): Promise<void> => {
    const stats = await lstat(path).catch(() => undefined)
    if (!stats?.isFile() || Math.max(stats.mtimeMs, stats.ctimeMs) < sinceMs || seen.has(path))
      return
    seen.add(path)
    searched += 1
    try {
      if (await holds(path, needles)) paths.push(path)
    } catch {
      unreadable += 1
    }
  }
  const walk = async (folder: string): Promise<void> => {
    if (seen.has(folder)) return
    seen.add(folder)
    const entries: Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) await walk(path)
      else if (entry.isFile()) await look(path)
    }
  }
  for (const root of roots) {
    // A root may be a link itself, as /tmp is on macOS.
    const path = await realpath(root).catch(() => undefined)
    if (path === undefined) continue
    if ((await lstat(path).catch(() => undefined))?.isDirectory()) await walk(path)
    else await look(path)
  }
  return { paths: paths.toSorted(), searched, unreadable }
}

/** Reads in pieces: a file can be larger than memory. */
const holds = async (path: string, needles: readonly Buffer[]): Promise<boolean> => {
  const overlap = Math.max(...needles.map(({ length }) => length)) - 1
  let last = Buffer.alloc(0)
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    const piece = Buffer.concat([last, chunk])
    if (needles.some((needle) => piece.includes(needle))) return true
    last = piece.subarray(-overlap)
  }
  return false
}
