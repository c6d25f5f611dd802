import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { DoorwardError } from '../errors.ts'
import { expandTilde } from '../home/home.ts'
import { isFixed, parseTemplate, type Template } from '../templates.ts'
import { didYouMean } from '../text.ts'

/*
 * The names that a target may have, each by its own strict grammar: what stands in the configuration is
 * held to it when it is loaded, and what an event has put into it once more before anything is sent.
 */

/** The kinds of target that leave this machine. */
export const sentKinds = ['slack', 'telegram', 'discord', 'email', 'github', 'http'] as const
export type SentKind = (typeof sentKinds)[number]

/** How a target of this kind is written, for messages. */
export const addressForms: Readonly<Record<SentKind, string>> = {
  slack: 'slack:#channel, slack:@user or slack:<id>',
  telegram: 'telegram:<chat id>, telegram:@channel or telegram:@me',
  discord: 'discord:<name>, a name of targets.discord',
  email: 'email:<address>, one address',
  github: 'github:<owner>/<repo>#<number>',
  http: 'http:<name>, a name of targets.http',
}

/** What may name an entry of `targets.discord` and `targets.http`. */
export const entryName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

const slackName = /^[#@](?=[^.-])[\p{L}\p{M}\p{N}._-]{1,80}$/u
// Channel, private group, direct message, user, of an enterprise too; Slack promises no length.
const slackId = /^@?[CDGUW][A-Z0-9]{2,20}$/
const telegramChat = /^(-?[1-9]\d{0,18}|@[A-Za-z][A-Za-z0-9_]{3,31})$/
const githubIssue =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}#)[A-Za-z0-9._-]{1,100}#[1-9]\d{0,9}$/
// RFC 5321 without quoted local parts, and without % ! and |, by which mail was once routed on.
const localPart = /^(?=.{1,64}$)[A-Za-z0-9#$&'*+/=?^_~-]+(\.[A-Za-z0-9#$&'*+/=?^_~-]+)*$/
const domainLabel = /^[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/** True for one mail address and nothing else: no comma, name, quote, space or line break. */
export const isMailAddress = (text: string): boolean => {
  const at = text.lastIndexOf('@')
  const labels = text.slice(at + 1).split('.')
  return (
    at > 0 &&
    text.length <= 254 &&
    localPart.test(text.slice(0, at)) &&
    labels.every((label) => domainLabel.test(label))
  )
}

/** True for a chat of Telegram: its number, or the public name of a channel or group. */
export const isTelegramChat = (text: string): boolean => telegramChat.test(text)

/** True when this is how a target of this kind can be named. */
export const isAddress = (kind: SentKind, address: string): boolean => {
  switch (kind) {
    case 'slack':
      return slackId.test(address) || slackName.test(address)
    case 'telegram':
      return isTelegramChat(address)
    case 'email':
      return isMailAddress(address)
    case 'github':
      return githubIssue.test(address)
    case 'discord':
    case 'http':
      return entryName.test(address)
  }
}

/** Where a result goes. `text` is the value as it stands in the configuration. */
export type Target = { readonly text: string } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: Template }
  | { readonly kind: SentKind; readonly address: Template }
)

/** The forms a `deliver_to` can have, for messages and for the nearest valid name. */
const targetForms = [
  'none',
  'log',
  'notify:desktop',
  'file:<path>',
  ...sentKinds.map((kind) => `${kind}:…`),
] as const

/** The owner's own chat, named by `targets.telegram.me`. Never made of an event. */
export const ownChat = '@me'

/** Reads one `deliver_to` value. Throws `config-invalid` with the forms that exist. */
export const parseTarget = (text: string): Target => {
  if (text === 'none') return { text, kind: 'none' }
  if (text === 'log') return { text, kind: 'log' }
  if (text === 'notify:desktop') return { text, kind: 'notify' }
  if (text.startsWith('file:')) {
    const path = text.slice('file:'.length).trim()
    if (path === '' || path.endsWith('/'))
      throw new DoorwardError('config-invalid', `target "${text}" names no file`)
    if (path.includes('\0'))
      throw new DoorwardError('config-invalid', 'the path of the file has a NUL character in it')
    return { text, kind: 'file', path: parseTemplate(path) }
  }
  const [before = ''] = text.split(':', 1)
  const kind = sentKinds.find((name) => name === before)
  if (kind !== undefined && text !== kind)
    return { text, kind, address: parseAddress(kind, text, text.slice(kind.length + 1).trim()) }
  const meant =
    didYouMean(text, ['none', 'log', 'notify:desktop']) ??
    didYouMean(`${before}:`, ['file:', ...sentKinds.map((name) => `${name}:`)])
  throw new DoorwardError('config-invalid', `unknown target "${text}"`, {
    hint: meant ?? `one of ${targetForms.join(', ')}`,
  })
}

const parseAddress = (kind: SentKind, text: string, address: string): Template => {
  const template = parseTemplate(address)
  if (isFixed(template)) {
    if (isAddress(kind, address) || (kind === 'telegram' && address === ownChat)) return template
    throw new DoorwardError('config-invalid', `target "${text}" cannot be delivered to`, {
      hint: `write ${addressForms[kind]}`,
    })
  }
  if (kind === 'http')
    throw new DoorwardError(
      'config-invalid',
      `target "${text}": an event cannot choose where an http target leads`,
      { hint: `write ${addressForms.http}` },
    )
  return template
}

/** The file that a `file:` target names: under the home, unless its path is absolute or begins with `~/`. */
export const resolveTargetFile = (path: string, homeFolder: string): string => {
  if (path.startsWith('~/')) return expandTilde(path)
  return isAbsolute(path) ? path : join(homeFolder, path)
}

/** True where the folders of a target are made with its file: no others are. */
export const makesFolders = (path: string): boolean => !isAbsolute(path) && !path.startsWith('~/')

/** The folder of the file a target names, as far as no event chooses it. */
export const fixedFolder = ({ source }: Template, homeFolder: string): string =>
  dirname(resolveTargetFile(`${source.split('{{')[0]}x`, homeFolder))

const ours = new Set(['.env', 'config', 'run', 'tokens', 'clients'])

/**
 * True for what doorward itself reads or keeps secret under home, and its log: a target may be made
 * of names out of a payload alone, and an answer in `.env` would be the next start's secrets.
 */
export const isOwnFile = (file: string, homeFolder: string): boolean => {
  const [first = '', second = ''] = relative(homeFolder, file).split(sep).map(folded)
  return ours.has(first) || (first === 'logs' && second.startsWith('daemon.'))
}

/**
 * Some file systems ignore case, and Windows dots and spaces at the end. By way of upper case, which
 * is how they compare: there is a second small s (U+017F).
 */
const folded = (name: string): string =>
  name
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, '')
