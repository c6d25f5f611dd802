import { listSecrets } from '../../shared/config/environment.ts'
import { toAgentError } from './answer.ts'

/** Variables by which programs find their files and the user's language; no secrets. */
const passedNames = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_STATE_HOME',
  'XDG_CACHE_HOME',
  'XDG_RUNTIME_DIR',
  'SystemRoot',
  'SystemDrive',
  'PATHEXT',
  'COMSPEC',
  // The spelling of Windows, where names ignore case.
  'Path',
  'ComSpec',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
  'TEMP',
  'TMP',
]

/**
 * The environment of an agent: a short list from ours, what doorward sets, and what its entry adds, where
 * `env:NAME` is the value of one of ours and `oauth:<provider>` one of these tokens. An `env:NAME` that is
 * unset is left out.
 */
export const cleanEnvironment = (
  ours: NodeJS.ProcessEnv,
  added: Readonly<Record<string, string>>,
  tokens: ReadonlyMap<string, string> = new Map(),
  more: {
    readonly passed?: readonly string[] | undefined
    readonly set?: Readonly<Record<string, string>>
  } = {},
): Record<string, string> => {
  const clean: Record<string, string> = {}
  const isPassed = (name: string) =>
    passedNames.includes(name) || name.startsWith('LC_') || more.passed?.includes(name)
  for (const [name, value] of Object.entries(ours))
    if (value !== undefined && isPassed(name)) clean[name] = value
  Object.assign(clean, more.set)
  for (const [name, value] of Object.entries(added)) {
    const resolved = resolveValue(value, ours, tokens)
    if (resolved !== undefined) clean[name] = resolved
  }
  return clean
}

const resolveValue = (
  value: string,
  ours: NodeJS.ProcessEnv,
  tokens: ReadonlyMap<string, string>,
): string | undefined => {
  if (value.startsWith('oauth:')) return tokens.get(value.slice('oauth:'.length))
  return value.startsWith('env:') ? getOwn(ours, value.slice('env:'.length)) : value
}

/** `env:toString` names no variable, though every object has that property. */
const getOwn = (variables: NodeJS.ProcessEnv, name: string): string | undefined =>
  Object.hasOwn(variables, name) ? variables[name] : undefined

/** The providers whose tokens an entry asks for. */
export const getProviders = (added: Readonly<Record<string, string>>): Set<string> =>
  new Set(
    Object.values(added)
      .filter((value) => value.startsWith('oauth:'))
      .map((value) => value.slice('oauth:'.length)),
  )

/** The value of a variable that an agent needs. Throws `agent-failed` when it is unset or empty. */
export const getRequired = (name: string, env: NodeJS.ProcessEnv): string => {
  const [value] = listSecrets([name], env)
  if (value !== undefined) return value.trim()
  const hint = `set ${name} in .env of the home folder, or in the environment of the daemon`
  throw toAgentError('agent-failed', `${name} is unset or empty`, { hint })
}

/** The name to show in place of each secret: `token of github`. */
type Secrets = ReadonlyMap<string, string>

/** Shorter values are words such as `true`, not secrets. */
const minSecretLength = 8

/** The secrets that an entry brings into the environment: tokens, and each line of `env:NAME` values. */
export const collectSecrets = (
  ours: NodeJS.ProcessEnv,
  added: Readonly<Record<string, string>>,
  tokens: ReadonlyMap<string, string>,
): Secrets => {
  const secrets = new Map<string, string>()
  for (const value of Object.values(added)) {
    if (!value.startsWith('env:')) continue
    const name = value.slice('env:'.length)
    for (const line of (getOwn(ours, name) ?? '').split('\n').map((text) => text.trim()))
      if (line.length >= minSecretLength) secrets.set(line, `value of ${name}`)
  }
  for (const [provider, token] of tokens) secrets.set(token, `token of ${provider}`)
  return secrets
}

/** Fewer characters of a secret disclose nothing, and are often part of another word. */
const minPartLength = 4

/**
 * The text with `<token of github>` in place of each secret, and of the part of a secret at the start or
 * end of the text: long output is cut, and the author of a payload can choose where.
 */
export const hideSecrets = (text: string, secrets: Secrets): string => {
  // One secret can be part of another.
  const longestFirst = [...secrets].sort(([one], [other]) => other.length - one.length)
  return longestFirst.reduce(
    (clean, [secret, name]) => clean.replaceAll(secret, `<${name}>`),
    hideCutEnd(hideCutStart(text.replace(/^\ufffd+/, ''), secrets), secrets),
  )
}

const hideCutStart = (text: string, secrets: Secrets): string => {
  const part = findLongestPart(secrets, (secret, length) => text.startsWith(secret.slice(-length)))
  return part ? `<${part.name}>${text.slice(part.length)}` : text
}

const hideCutEnd = (text: string, secrets: Secrets): string => {
  const part = findLongestPart(secrets, (secret, length) => text.endsWith(secret.slice(0, length)))
  return part ? `${text.slice(0, -part.length)}<${part.name}>` : text
}

/** The longest part of any secret, shorter than the whole, that matches. */
const findLongestPart = (
  secrets: Secrets,
  matches: (secret: string, length: number) => boolean,
): { readonly name: string; readonly length: number } | undefined => {
  let longest: { name: string; length: number } | undefined
  for (const [secret, name] of secrets)
    for (let length = secret.length - 1; length >= minPartLength; length -= 1)
      if (length > (longest?.length ?? 0) && matches(secret, length)) longest = { name, length }
  return longest
}
