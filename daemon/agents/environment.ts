import { listSecrets } from '../../shared/config/environment.ts'
import { DoorwardError } from '../../shared/errors.ts'

/** What programs need to find their files and speak the right language; nothing that is a secret. */
const passed = [
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
  // As Windows itself writes them: names differ there in case only.
  'Path',
  'ComSpec',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
  'TEMP',
  'TMP',
]

/**
 * The environment of an agent: a short list from ours (and those of the names in `more`), what
 * doorward sets itself, and what its entry adds, where `env:NAME` is the value of one of ours and
 * `oauth:<provider>` one of these tokens. A name that is unset there is left out.
 */
export const cleanEnvironment = (
  ours: NodeJS.ProcessEnv,
  added: Readonly<Record<string, string>>,
  tokens: ReadonlyMap<string, string> = new Map(),
  more: {
    readonly passed?: readonly string[]
    readonly set?: Readonly<Record<string, string>>
  } = {},
): Record<string, string> => {
  const clean: Record<string, string> = {}
  const isPassed = (name: string) =>
    passed.includes(name) || name.startsWith('LC_') || more.passed?.includes(name)
  for (const [name, value] of Object.entries(ours))
    if (value !== undefined && isPassed(name)) clean[name] = value
  Object.assign(clean, more.set)
  for (const [name, value] of Object.entries(added)) {
    const actual = resolveValue(value, ours, tokens)
    if (actual !== undefined) clean[name] = actual
  }
  return clean
}

/** The providers whose tokens these values of an entry ask for. */
export const providersIn = (added: Readonly<Record<string, string>>): string[] => [
  ...new Set(
    Object.values(added)
      .filter((value) => value.startsWith('oauth:'))
      .map((value) => value.slice('oauth:'.length)),
  ),
]

/** Shorter values are no secrets, but words such as `true`. */
const leastSecret = 8

/**
 * What an entry brings into the environment that nobody may see: the tokens, and the values of
 * `env:NAME`, each line of one for itself.
 */
export const secretsIn = (
  ours: NodeJS.ProcessEnv,
  added: Readonly<Record<string, string>>,
  tokens: ReadonlyMap<string, string>,
): Secrets => {
  const secrets = new Map<string, string>()
  for (const value of Object.values(added)) {
    if (!value.startsWith('env:')) continue
    const name = value.slice('env:'.length)
    for (const line of (ownValue(ours, name) ?? '').split('\n').map((text) => text.trim()))
      if (line.length >= leastSecret) secrets.set(line, `value of ${name}`)
  }
  for (const [provider, token] of tokens) secrets.set(token, `token of ${provider}`)
  return secrets
}

const resolveValue = (
  value: string,
  ours: NodeJS.ProcessEnv,
  tokens: ReadonlyMap<string, string>,
): string | undefined => {
  if (value.startsWith('oauth:')) return tokens.get(value.slice('oauth:'.length))
  return value.startsWith('env:') ? ownValue(ours, value.slice('env:'.length)) : value
}

/** `env:toString` names no variable, though every object has that property. */
const ownValue = (variables: NodeJS.ProcessEnv, name: string): string | undefined =>
  Object.hasOwn(variables, name) ? variables[name] : undefined

/** The value of a variable that an agent cannot do without. Throws `agent-failed` when it is unset or empty. */
export const envValue = (name: string, env: NodeJS.ProcessEnv): string => {
  const [value] = listSecrets([name], env)
  if (value !== undefined) return value.trim()
  const message = `${name} is unset or empty`
  const hint = `set ${name} in .env of the home folder, or in the environment of the daemon`
  throw new DoorwardError('agent-failed', message, { hint, localDetail: `${message} (${hint})` })
}

/** What each secret is called where it may not be shown: `token of github`. */
type Secrets = ReadonlyMap<string, string>

/** Fewer characters of a secret tell nothing, and may well be part of another word. */
const leastPart = 4

/**
 * The text with `<token of github>` in place of each secret. One that is cut, as the text begins or ends
 * in it, is hidden as far as it is there: what a program says is cut wherever it is too long, and who
 * writes a payload can choose the place.
 */
export const hideSecrets = (text: string, secrets: Secrets): string => {
  // One can be part of another.
  const longestFirst = [...secrets].sort(([one], [other]) => other.length - one.length)
  return longestFirst.reduce(
    (clean, [secret, name]) => clean.replaceAll(secret, `<${name}>`),
    withoutCutEnd(withoutCutStart(text.replace(/^\ufffd+/, ''), secrets), secrets),
  )
}

const withoutCutStart = (text: string, secrets: Secrets): string => {
  const part = longestPart(secrets, (secret, length) => text.startsWith(secret.slice(-length)))
  return part ? `<${part.name}>${text.slice(part.length)}` : text
}

const withoutCutEnd = (text: string, secrets: Secrets): string => {
  const part = longestPart(secrets, (secret, length) => text.endsWith(secret.slice(0, length)))
  return part ? `${text.slice(0, -part.length)}<${part.name}>` : text
}

/** Of all secrets the longest part, not the whole, of which this is so. */
const longestPart = (
  secrets: Secrets,
  isThere: (secret: string, length: number) => boolean,
): { readonly name: string; readonly length: number } | undefined => {
  let longest: { name: string; length: number } | undefined
  for (const [secret, name] of secrets)
    for (let length = secret.length - 1; length >= leastPart; length -= 1)
      if (length > (longest?.length ?? 0) && isThere(secret, length)) longest = { name, length }
  return longest
}
