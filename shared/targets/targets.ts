import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { DoorwardError } from '../errors.ts'
import { expandTilde } from '../home/home.ts'
import type { Path } from '../paths.ts'
import { isFixed, parseTemplate, pathsIn, type Template } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { type HttpReads, listReads } from './http-templates.ts'
import {
  addressForm,
  isAddress,
  isOutputsKind,
  type SentKind,
  sentKinds,
  type TargetSettings,
} from './schema.ts'

const githubKinds = [
  'github',
  'github-review',
  'github-check',
  'github-outputs',
  'pull-request',
  'push',
]

/** True for targets that publish what an agent changed. */
export const publishesChange = ({ kind }: { readonly kind: string }): boolean =>
  kind === 'pull-request' || kind === 'push'

/** The kind whose settings and token a kind uses. */
export const toServerKind = (kind: string): string => {
  if (kind === 'gitlab-review' || kind === 'gitlab-outputs') return 'gitlab'
  return githubKinds.includes(kind) ? 'github' : kind
}

/** The destination of a result. `text` is the value in the configuration. */
export type Target = { readonly text: string } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: Template }
  | {
      readonly kind: SentKind
      readonly address: Template
      /** What the request to an `http` target takes from its event. */
      readonly reads?: HttpReads | undefined
    }
)

/** The paths without whose values a target has no address. */
export const targetPaths = (target: Target): readonly Path[] => {
  if ('address' in target) return [...pathsIn(target.address), ...(target.reads?.segments ?? [])]
  return target.kind === 'file' ? pathsIn(target.path) : []
}

/** The forms of `deliver_to`, for messages. */
const targetForms = [
  'none',
  'log',
  'notify:desktop',
  'file:<path>',
  'reply',
  ...sentKinds.filter((kind) => !isOutputsKind(kind)).map((kind) => `${kind}:…`),
] as const

/** Stands for `targets.telegram.me`. An event cannot choose it. */
export const ownChat = '@me'

/** Stands for where an event came from. */
const reply = 'reply'

/** Stands for what an event of GitHub or GitLab is about, in the targets of `outputs`; `deliver_to` has it not. */
export const subject = 'subject'

/** True for a target of `outputs`. */
export const isAtSubject = (target: Target): boolean =>
  'address' in target && target.address.source === subject

/** The kind of a target that answers where its event came from; each has the name of its `signature_scheme`. */
export const replyKind = (target: Target): ReplyKind | undefined => {
  if (!('address' in target) || target.address.source !== reply) return undefined
  return replyKinds.find((kind) => kind === target.kind)
}

const replyKinds = ['github', 'gitlab', 'slack', 'telegram', 'jira', 'linear'] as const
export type ReplyKind = (typeof replyKinds)[number]

/** The target `reply` of a webhook with this `signature_scheme`. Throws `config-invalid`. */
const toReplyTarget = (scheme: string | undefined): Target => {
  const kind = replyKinds.find((name) => name === scheme)
  if (kind !== undefined) return { text: reply, kind, address: parseTemplate(reply) }
  throw new DoorwardError(
    'config-invalid',
    `an event of signature_scheme ${scheme ?? 'hmac'} has no place for a reply`,
    { hint: `reply is for ${replyKinds.join(', ')}: name a target` },
  )
}

/** Addresses that stand for another one; an event cannot choose them. */
const standIns: Partial<Record<SentKind, readonly string[]>> = {
  telegram: [ownChat, reply],
  slack: [reply],
  jira: [reply],
  linear: [reply],
}

/** A target with what its entry in gateway.yaml reads of the event. */
export const withReads = (target: Target, entries: TargetSettings['http']): Target => {
  if (target.kind !== 'http') return target
  const { source: name } = target.address
  const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
  const reads = entry && listReads(entry)
  return reads ? { ...target, reads } : target
}

/** Parses one value of `deliver_to` of a webhook with this `signature_scheme`. Throws `config-invalid` with the valid forms. */
export const parseTarget = (text: string, scheme?: string): Target => {
  if (text === reply) return toReplyTarget(scheme)
  if (text === 'none') return { text, kind: 'none' }
  if (text === 'log') return { text, kind: 'log' }
  if (text === 'notify:desktop') return { text, kind: 'notify' }
  if (text.startsWith('file:')) {
    const path = text.slice('file:'.length).trim()
    if (path === '' || path.endsWith('/'))
      throw new DoorwardError('config-invalid', `target "${text}" names no file`)
    if (path.includes('\0'))
      throw new DoorwardError('config-invalid', 'the path of the file contains a NUL character')
    return { text, kind: 'file', path: parseTemplate(path) }
  }
  const [before = ''] = text.split(':', 1)
  const kind = sentKinds.find((name) => name === before)
  if (kind !== undefined && text !== kind)
    return { text, kind, address: parseAddress(kind, text, text.slice(kind.length + 1).trim()) }
  const meant =
    didYouMean(text, ['none', 'log', 'notify:desktop', reply]) ??
    didYouMean(`${before}:`, ['file:', ...sentKinds.map((name) => `${name}:`)])
  throw new DoorwardError('config-invalid', `unknown target "${text}"`, {
    hint: meant ?? `one of ${targetForms.join(', ')}`,
  })
}

const parseAddress = (kind: SentKind, text: string, address: string): Template => {
  const template = parseTemplate(address)
  if (isOutputsKind(kind))
    throw new DoorwardError('config-invalid', `target "${text}" is not for deliver_to`, {
      hint: `write ${addressForm(kind)}`,
    })
  if (isFixed(template)) {
    if (isAddress(kind, address) || standIns[kind]?.includes(address)) return template
    throw new DoorwardError('config-invalid', `target "${text}" is not a valid address`, {
      hint: `write ${addressForm(kind)}`,
    })
  }
  if (kind === 'http')
    throw new DoorwardError(
      'config-invalid',
      `target "${text}": an event cannot choose an http target`,
      { hint: `write ${addressForm('http')}` },
    )
  return template
}

/** The file of a `file:` target: relative to the home, unless its path is absolute or begins with `~/`. */
export const resolveTargetFile = (path: string, homeFolder: string): string => {
  if (path.startsWith('~/')) return expandTilde(path)
  return isAbsolute(path) ? path : join(homeFolder, path)
}

/** True if a delivery creates the missing folders of this path. */
export const makesFolders = (path: string): boolean => !isAbsolute(path) && !path.startsWith('~/')

/** The folder of a file target, up to the part that an event chooses. */
export const fixedFolder = ({ source }: Template, homeFolder: string): string =>
  dirname(resolveTargetFile(`${source.split('{{')[0]}x`, homeFolder))

const ownNames = new Set([
  '.env',
  'accounts.json',
  'config',
  'run',
  'tokens',
  'clients',
  'workspaces',
])

/**
 * True for files that doorward reads or keeps secret under the home, and its log. A payload may choose the
 * whole path, and an answer written to `.env` would become the secrets of the next start.
 */
export const isOwnFile = (file: string, homeFolder: string): boolean => {
  const [first = '', second = ''] = relative(homeFolder, file).split(sep).map(foldCase)
  return ownNames.has(first) || (first === 'logs' && second.startsWith('daemon.'))
}

/**
 * Some file systems ignore case, and Windows ignores trailing dots and spaces. Upper case comes first, as in
 * their comparison: it maps the second small s (U+017F) too.
 */
const foldCase = (name: string): string =>
  name
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, '')
