import { BusError } from './bus-error.ts'

/** One complete D-Bus type; `r` is a struct and `e` an entry of a dictionary, as in the specification. */
export type Type =
  | { readonly kind: BasicKind | 'v' }
  | { readonly kind: 'a'; readonly of: Type }
  | { readonly kind: 'r'; readonly fields: readonly Type[] }
  | { readonly kind: 'e'; readonly key: Type; readonly value: Type }

type BasicKind = 'y' | 'b' | 'n' | 'q' | 'i' | 'u' | 'x' | 't' | 'd' | 's' | 'o' | 'g'

const basics: ReadonlySet<string> = new Set('ybnqiuxtdsog')
const maxSignatureDepth = 32

/** The types a signature lists (D-Bus specification, "Type Signatures"). Throws `bus-protocol`. */
export const typesOf = (signature: string): Type[] => {
  const found: Type[] = []
  for (let at = 0; at < signature.length;) {
    const [type, next] = typeAt(signature, at, 0)
    found.push(type)
    at = next
  }
  return found
}

const typeAt = (signature: string, at: number, depth: number): [Type, number] => {
  const letter = signature[at] ?? ''
  if (depth > maxSignatureDepth) throw invalid(signature)
  if (isBasic(letter) || letter === 'v') return [{ kind: letter }, at + 1]
  if (letter === 'a' && signature[at + 1] === '{') {
    const [key, afterKey] = typeAt(signature, at + 2, depth + 1)
    const [value, end] = typeAt(signature, afterKey, depth + 1)
    if (!isBasic(key.kind) || signature[end] !== '}') throw invalid(signature)
    return [{ kind: 'a', of: { kind: 'e', key, value } }, end + 1]
  }
  if (letter === 'a') {
    const [of, end] = typeAt(signature, at + 1, depth + 1)
    return [{ kind: 'a', of }, end]
  }
  if (letter !== '(') throw invalid(signature)
  const fields: Type[] = []
  let end = at + 1
  while (signature[end] !== ')') {
    const [field, next] = typeAt(signature, end, depth + 1)
    fields.push(field)
    end = next
  }
  if (fields.length === 0) throw invalid(signature)
  return [{ kind: 'r', fields }, end + 1]
}

const isBasic = (letter: string): letter is BasicKind => basics.has(letter)

const invalid = (signature: string): BusError =>
  new BusError('bus-protocol', `"${signature}" is no signature that can be used here`)

/** At which multiple of bytes a value of the type begins. */
export const alignmentOf = ({ kind }: Type): 1 | 2 | 4 | 8 => alignments[kind]

const alignments: Readonly<Record<Type['kind'], 1 | 2 | 4 | 8>> = {
  y: 1,
  g: 1,
  v: 1,
  n: 2,
  q: 2,
  b: 4,
  i: 4,
  u: 4,
  s: 4,
  o: 4,
  a: 4,
  x: 8,
  t: 8,
  d: 8,
  r: 8,
  e: 8,
}
