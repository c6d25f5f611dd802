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
 * The environment of an agent: a short list from ours and what its entry adds, where `env:NAME`
 * is the value of one of ours. A name that is unset there is left out.
 */
export const cleanEnvironment = (
  ours: NodeJS.ProcessEnv,
  added: Readonly<Record<string, string>>,
): Record<string, string> => {
  const clean: Record<string, string> = {}
  for (const [name, value] of Object.entries(ours))
    if (value !== undefined && (passed.includes(name) || name.startsWith('LC_')))
      clean[name] = value
  for (const [name, value] of Object.entries(added)) {
    const actual = value.startsWith('env:') ? ownValue(ours, value.slice('env:'.length)) : value
    if (actual !== undefined) clean[name] = actual
  }
  return clean
}

/** `env:toString` names no variable, though every object has that property. */
const ownValue = (variables: NodeJS.ProcessEnv, name: string): string | undefined =>
  Object.hasOwn(variables, name) ? variables[name] : undefined
