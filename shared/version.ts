import { readFileSync } from 'node:fs'

/** The folder of the installed package: where `assets/` and `config/` lie. */
export const packageFolder = new URL(
  import.meta.url.includes('/dist/') ? '../../' : '../',
  import.meta.url,
)

/** The program that people run, in that folder: `cli/` as scripts/bundle.mjs joins it. */
export const cliProgram = 'dist/bin/doorward.cjs'

/** The daemon's program: `daemon/`, joined likewise. The second is for launchd, and loads the first. */
export const daemonProgram = 'dist/bin/doorward-daemon.cjs'
export const daemonUnderLaunchd = 'dist/bin/doorward-daemon-under-launchd.cjs'

/** The version in `package.json`. */
export const version: string = (
  JSON.parse(readFileSync(new URL('package.json', packageFolder), 'utf8')) as { version: string }
).version

/**
 * The `User-Agent` by which the daemon can name who asks: `doorward-cli/0.1.0 (oauth exec git)`. The
 * comment (RFC 9110 section 10.1.5) is made printable ASCII of at most 60 characters that cannot end it.
 */
export const getUserAgent = (program: 'cli' | 'tray', what = ''): string => {
  const comment = what
    .replaceAll(/[^\x20-\x7e]|[()\\]/g, '')
    .trim()
    .slice(0, 60)
    .trim()
  return `doorward-${program}/${version}${comment === '' ? '' : ` (${comment})`}`
}
