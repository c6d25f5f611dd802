import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { DoorwardError } from '../errors.ts'
import { expandTilde } from '../home/home.ts'
import type { Path } from '../paths.ts'
import { isFixed, parseTemplate, pathsIn, type Template } from '../templates.ts'
import { didYouMean } from '../text.ts'

/*
 * The strict grammars of target addresses. They are checked when the configuration is loaded, and again
 * after values of an event are inserted, before anything is sent.
 */

/** The kinds of target outside this machine. */
export const sentKinds = [
  'slack',
  'telegram',
  'discord',
  'email',
  'github',
  'github-review',
  'github-check',
  'pull-request',
  'gitlab',
  'http',
] as const
export type SentKind = (typeof sentKinds)[number]

/** The kinds that `targets.github` is about. */
export const githubKinds = ['github', 'github-review', 'github-check', 'pull-request'] as const

/** The forms of an address, for messages. */
export const addressForms: Readonly<Record<SentKind, string>> = {
  slack: 'slack:#channel, slack:@user, slack:<id>, slack:<channel>/<thread_ts> or slack:reply',
  telegram: 'telegram:<chat id>, telegram:@channel or telegram:@me',
  discord: 'discord:<name>, a name of targets.discord',
  email: 'email:<address>, one address',
  github: 'github:<owner>/<repo>#<number>',
  'github-review': 'github-review:<owner>/<repo>#<number>, of a pull request',
  'github-check': 'github-check:<owner>/<repo>@<commit>, by its full hash',
  'pull-request':
    'pull-request:<owner>/<repo>, or pull-request:<owner>/<repo>@<branch> for another base than the default branch',
  gitlab: 'gitlab:<group>/<project>!<merge request> or gitlab:<group>/<project>#<issue>',
  http: 'http:<name>, a name of targets.http',
}

/** The name of an entry of `targets.discord` and `targets.http`. */
export const entryName = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

const slackName = /^[#@](?=[^.-])[\p{L}\p{M}\p{N}._-]{1,80}$/u
// Channel, private group, direct message, user, also of an enterprise. Slack documents no length.
const slackId = /^@?[CDGUW][A-Z0-9]{2,20}$/
// The time stamp of the message that begins a thread: seconds and six digits.
const slackThread = /^[1-9]\d{8,10}\.\d{6}$/
const telegramChat = /^(-?[1-9]\d{0,18}|@[A-Za-z][A-Za-z0-9_]{3,31})$/
const githubIssue =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}#)[A-Za-z0-9._-]{1,100}#[1-9]\d{0,9}$/
const githubCommit =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}@)[A-Za-z0-9._-]{1,100}@([0-9a-f]{40}|[0-9a-f]{64})$/
// git-check-ref-format(1), and no other characters than branches usually have.
const pullRequest =
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}\/(?!\.{1,2}(?:@|$))[A-Za-z0-9._-]{1,100}(?:@(?!.*(?:\.\.|\/\/|\/\.|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9_./#+-]{0,199}(?<![./]))?$/
// docs.gitlab.com/user/reserved_names: letters, digits, `_`, `-` and `.`, no `-` first, at most 20 groups.
const gitlabItem =
  /^(?:(?!\.+\/)[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}\/){1,20}(?!\.+[!#])[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}[!#][1-9]\d{0,9}$/
// RFC 5321 without quoted local parts, and without % ! and |, which once routed mail to other hosts.
const localPart = /^(?=.{1,64}$)[A-Za-z0-9#$&'*+/=?^_~-]+(\.[A-Za-z0-9#$&'*+/=?^_~-]+)*$/
const domainLabel = /^[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/** True for exactly one mail address, without comma, name, quote, space or line break. */
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

/** True for a Telegram chat: its number, or the public name of a channel or group. */
export const isTelegramChat = (text: string): boolean => telegramChat.test(text)

const isSlackAddress = (address: string): boolean => {
  const [channel = '', thread] = address.split('/', 2)
  const isChannel = slackId.test(channel) || slackName.test(channel)
  if (thread === undefined) return isChannel
  return (
    isChannel &&
    !channel.startsWith('@') &&
    address === `${channel}/${thread}` &&
    slackThread.test(thread)
  )
}

/** True for a valid address of this kind. */
export const isAddress = (kind: SentKind, address: string): boolean => {
  switch (kind) {
    case 'slack':
      return isSlackAddress(address)
    case 'telegram':
      return isTelegramChat(address)
    case 'email':
      return isMailAddress(address)
    case 'github':
    case 'github-review':
      return githubIssue.test(address)
    case 'github-check':
      return githubCommit.test(address)
    case 'pull-request':
      return pullRequest.test(address)
    case 'gitlab':
      return gitlabItem.test(address)
    case 'discord':
    case 'http':
      return entryName.test(address)
  }
}

/** The destination of a result. `text` is the value in the configuration. */
export type Target = { readonly text: string } & (
  | { readonly kind: 'none' }
  | { readonly kind: 'log' }
  | { readonly kind: 'notify' }
  | { readonly kind: 'file'; readonly path: Template }
  | { readonly kind: SentKind; readonly address: Template }
)

/** The paths that the template of a target reads. */
export const targetPaths = (target: Target): readonly Path[] => {
  if ('address' in target) return pathsIn(target.address)
  return target.kind === 'file' ? pathsIn(target.path) : []
}

/** The forms of `deliver_to`, for messages. */
const targetForms = [
  'none',
  'log',
  'notify:desktop',
  'file:<path>',
  ...sentKinds.map((kind) => `${kind}:…`),
] as const

/** Stands for `targets.telegram.me`. An event cannot choose it. */
export const ownChat = '@me'

/** Stands for where an event of Slack came from. */
export const slackReply = 'reply'

export const isSlackReply = (target: Target): boolean =>
  target.kind === 'slack' && target.address.source === slackReply

/** Addresses that stand for another one; an event cannot choose them. */
const standIns: Partial<Record<SentKind, string>> = { telegram: ownChat, slack: slackReply }

/** Parses one value of `deliver_to`. Throws `config-invalid` with the valid forms. */
export const parseTarget = (text: string): Target => {
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
    didYouMean(text, ['none', 'log', 'notify:desktop']) ??
    didYouMean(`${before}:`, ['file:', ...sentKinds.map((name) => `${name}:`)])
  throw new DoorwardError('config-invalid', `unknown target "${text}"`, {
    hint: meant ?? `one of ${targetForms.join(', ')}`,
  })
}

const parseAddress = (kind: SentKind, text: string, address: string): Template => {
  const template = parseTemplate(address)
  if (isFixed(template)) {
    if (isAddress(kind, address) || address === standIns[kind]) return template
    throw new DoorwardError('config-invalid', `target "${text}" is not a valid address`, {
      hint: `write ${addressForms[kind]}`,
    })
  }
  if (kind === 'http')
    throw new DoorwardError(
      'config-invalid',
      `target "${text}": an event cannot choose an http target`,
      { hint: `write ${addressForms.http}` },
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
