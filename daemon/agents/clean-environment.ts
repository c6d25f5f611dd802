import type { Secrets } from './hide-secrets.ts'

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
    const actual = valueOf(value, ours, tokens)
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

const valueOf = (
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
