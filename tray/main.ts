import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { DoorwardError, errorDocument } from '../shared/errors.ts'
import { resolveHome, prepareHome } from '../shared/home/home.ts'
import { lockHome } from '../shared/home/lock.ts'
import { ignoreSigusr1 } from '../shared/runtime.ts'
import { toPlainJson } from '../shared/text.ts'
import { runTray } from './tray.ts'

/** How long to wait for a panel at the start of a session. */
const hostWaitMs = 15_000

/** Starts the tray of one home: `node dist/tray/main.js [--home DIR] [--wait] [--json]`. */
const main = async (): Promise<number> => {
  const options = parseOptions()
  const home = resolveHome(options.home)
  await prepareHome(home)
  // A private working directory, so that no program is run from the one of the caller.
  const folder = join(home.run, 'tray')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  process.chdir(folder)
  const unlock = await lockHome(home, 'tray')
  try {
    await runTray(home, folder, options.wait ? Infinity : hostWaitMs)
  } finally {
    await unlock()
  }
  return 0
}

const parseOptions = (): { readonly home?: string; readonly wait?: boolean } => {
  const [wait, json] = [{ type: 'boolean' }, { type: 'boolean' }] as const
  try {
    return parseArgs({ options: { home: { type: 'string' }, wait, json } }).values
  } catch {
    throw new DoorwardError('usage', 'the tray takes only --home DIR, --wait and --json')
  }
}

/** The error as the command line prints it; with `--json` the error document of the API. */
const describe = (error: unknown, json: boolean): string => {
  if (json) return toPlainJson(JSON.stringify(errorDocument(error), null, 2))
  if (!(error instanceof DoorwardError))
    return `doorward: something went wrong in the tray (${error instanceof Error ? (error.stack ?? error.name) : typeof error})`
  return [`doorward: ${error.message}`, ...(error.hint ? [`hint: ${error.hint}`] : [])].join('\n')
}

ignoreSigusr1()
const code = await main().catch((error: unknown) => {
  process.stderr.write(`${describe(error, process.argv.includes('--json'))}\n`)
  // A running tray is what the user asked for.
  if (error instanceof DoorwardError && error.code === 'already-running') return 0
  return error instanceof DoorwardError && error.code === 'usage' ? 2 : 1
})
// A hanging notify-send would keep the process alive.
process.exit(code)
