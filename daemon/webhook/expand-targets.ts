import type { DotPath } from '../../shared/dot-path.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Target } from '../../shared/target.ts'
import type { Template } from '../../shared/template.ts'
import { plainText } from './expand.ts'
import type { Payload } from './parse.ts'
import { valueAt } from './value-at.ts'

/** A target with the payload's values in place, or the reason why it cannot be used. */
export type ReadyTarget = { readonly text: string } & (
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'invalid'; readonly error: DoorwardError }
)

/** Fills in templated targets. A value that may not be used fails that target only, later, and writes nothing. */
export const expandTargets = (targets: readonly Target[], payload: Payload): ReadyTarget[] =>
  targets.flatMap((target): ReadyTarget[] => {
    switch (target.kind) {
      case 'none':
        return []
      case 'log':
      case 'notify':
        return [{ text: target.text, kind: target.kind }]
      case 'file':
        return [readyFile(target.text, target.path, payload)]
    }
  })

const readyFile = (text: string, template: Template, payload: Payload): ReadyTarget => {
  try {
    const path = expandFileName(template, payload)
    return { text: `file:${path}`, kind: 'file', path }
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return { text, kind: 'invalid', error }
  }
}

const maxNameLength = 200

/**
 * A path in which each value from the payload is a plain part of a file name. Throws
 * `target-invalid`, without the value, for an empty one and for one that could lead elsewhere.
 */
export const expandFileName = (template: Template, payload: Payload): string => {
  const path = template.parts
    .map((part) => (typeof part === 'string' ? part : namePart(part, payload)))
    .join('')
  // Harmless parts must not add up to a way out: `.` and `.` to `..`.
  const literal = template.parts.map((part) => (typeof part === 'string' ? part : 'x')).join('')
  const dots = (text: string) => text.split(/[/\\]/).filter((name) => /^\.{1,2}$/.test(name)).length
  // Nor may a value stand where the user's own folder or a Windows drive or stream would be named.
  const begins = (text: string) => /^(~[/\\]|[a-z]:)/i.exec(text)?.[0] ?? ''
  if (dots(path) !== dots(literal) || begins(path) !== begins(literal))
    throw invalid(template.source, 'leads out of its folder')
  return path
}

const namePart = (path: DotPath, payload: Payload): string => {
  const value = plainText(valueAt(payload, path))
  const name = `{{event${path.length > 0 ? '.' : ''}${path.join('.')}}}`
  if (value.trim() === '') throw invalid(name, 'is empty in this event')
  if (value.length > maxNameLength)
    throw invalid(name, `is longer than ${maxNameLength} characters`)
  if (/[/\\]/.test(value)) throw invalid(name, 'has a slash in this event')
  if (value.includes('..') || value === '.') throw invalid(name, 'has dots that lead elsewhere')
  // Direction characters too: they show `fdp.exe` as `exe.pdf`.
  if (/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(value))
    throw invalid(name, 'has control characters')
  return value
}

const invalid = (name: string, reason: string) =>
  new DoorwardError('target-invalid', `the file name cannot be made: ${name} ${reason}`)
