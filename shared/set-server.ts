import { isDeepStrictEqual } from 'node:util'
import { isMap, isScalar, type Pair, parseDocument } from 'yaml'
import { DoorwardError } from './errors.ts'
import { readYaml } from './config/yaml.ts'

type ServerKeys = { readonly public_url?: string; readonly public_port?: number }

/**
 * Writes a key of `server` in the text of `gateway.yaml`, without touching a character of the rest. Throws
 * `config-invalid` where that cannot be done. Pure.
 */
export const setServer = (text: string, keys: ServerKeys): string => {
  const [[key, value] = ['', '']] = Object.entries(keys)
  const before = (readYaml('', text).value ?? {}) as { readonly server?: object | null }
  const expected = { ...before, server: { ...before.server, ...keys } }
  if (isDeepStrictEqual(before, expected)) return text
  const changed = write(text, key, String(value))
  const { value: after, problems } = readYaml('', changed)
  if (problems.length === 0 && isDeepStrictEqual(after, expected)) return changed
  throw new DoorwardError(
    'config-invalid',
    `server.${key} cannot be written the way gateway.yaml is written`,
    { hint: `write ${key}: ${value} below server by hand: doorward config edit gateway` },
  )
}

const write = (text: string, key: string, value: string): string => {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const line = `${key}: ${value}`
  const insert = (from: number, to: number, added: string) =>
    text.slice(0, from) + added + text.slice(to)
  const endOfLine = (offset: number) =>
    offset + (/^[^\r\n]*/.exec(text.slice(offset))?.[0].length ?? 0)
  const server = findPair(parseDocument(text).contents, 'server')
  if (!server) {
    const between = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol
    return `${text}${between}server:${eol}  ${line}${eol}`
  }
  const map = server.value
  if (!isMap(map))
    return insert(endOfLine(endOf(server)), endOfLine(endOf(server)), `${eol}  ${line}`)
  const own = findPair(map, key)
  if (own && isScalar(own.value) && own.value.range) {
    const [from, to] = own.value.range
    return insert(from, to, text[from - 1] === ':' ? ` ${value}` : value)
  }
  const [start = 0] = map.range ?? []
  if (map.flow) return insert(start + 1, start + 1, ` ${line}${map.items.length > 0 ? ',' : ' '}`)
  const end = endOfLine(endOf(map.items.at(-1)))
  const indent = ' '.repeat(start - text.lastIndexOf('\n', start - 1) - 1)
  return insert(end, end, `${eol}${indent}${line}`)
}

const findPair = (map: unknown, key: string): Pair | undefined =>
  isMap(map) ? map.items.find((pair) => isScalar(pair.key) && pair.key.value === key) : undefined

/** The end of the value of a pair; without a value, of its key. */
const endOf = (pair: Pair | undefined): number => {
  const [value, key] = [pair?.value, pair?.key].map((node) =>
    isScalar(node) || isMap(node) ? node.range?.[1] : undefined,
  )
  return value ?? key ?? 0
}
