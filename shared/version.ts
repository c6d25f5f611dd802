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
