import { readFileSync } from 'node:fs'

/** The folder of the installed package, with `assets/` and `config/`. */
export const packageFolder = new URL(
  import.meta.url.includes('/dist/') ? '../../' : '../',
  import.meta.url,
)

/** The command line program in that folder, bundled by scripts/bundle.mjs. */
export const cliProgram = 'dist/bin/doorward.cjs'

/** The daemon, bundled likewise. The second program is for launchd, and loads the first. */
export const daemonProgram = 'dist/bin/doorward-daemon.cjs'
export const daemonUnderLaunchd = 'dist/bin/doorward-daemon-under-launchd.cjs'

/** The program that asks the keychain of the desktop, bundled likewise. */
export const keychainProgram = 'dist/bin/doorward-daemon-keychain.cjs'

const readVersion = (): string =>
  (JSON.parse(readFileSync(new URL('package.json', packageFolder), 'utf8')) as { version: string })
    .version

/** The version in `package.json` when this process started. */
export const version: string = readVersion()

/**
 * Raised with every change of the messages between two daemons during a restart: a daemon with another number is
 * stopped and started instead.
 */
export const handoverVersion = 6

/** True when another version was installed over the one that runs. */
export const isReplaced = (): boolean => {
  try {
    return readVersion() !== version
  } catch {
    // Missing, or being written.
    return false
  }
}

/** True if a version (`v20.20.2`) is within a range (`>=20.19`). */
export const isAtLeast = (found: string, range: string): boolean => {
  const parts = (text: string) => (/\d+(\.\d+)*/.exec(text)?.[0] ?? '0').split('.').map(Number)
  const [has, needs] = [parts(found), parts(range)]
  for (const [index, wanted] of needs.entries()) {
    const part = has[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}

/**
 * The `User-Agent` that names the caller: `doorward-cli/0.1.0 (oauth exec git)`. The comment (RFC 9110 section
 * 10.1.5) is reduced to 60 printable ASCII characters without parentheses.
 */
export const getUserAgent = (program: 'cli' | 'tray', what = ''): string => {
  const comment = what
    .replaceAll(/[^\x20-\x7e]|[()\\]/g, '')
    .trim()
    .slice(0, 60)
    .trim()
  return `doorward-${program}/${version}${comment === '' ? '' : ` (${comment})`}`
}
