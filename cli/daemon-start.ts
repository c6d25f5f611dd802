import { pathToFileURL } from 'node:url'
import { daemonMain } from '../shared/client/spawn.ts'
import type { Context } from './context.ts'
import { exitFailed } from './exit-code.ts'
import { findRunningDaemon, startPatienceMs } from './find-daemon.ts'
import { reportError } from './report-error.ts'
import { StartError, startAndConnect } from './start-and-connect.ts'
import type { Terminal } from './terminal.ts'
import { isEnding, untilEnded, untilNoneEnds } from './until-ended.ts'

/**
 * Starts the daemon unless it runs, and prints its url and pid; one that is about to end is waited for. 78 is
 * for `--foreground` alone.
 */
export const startDaemon = async (
  context: Context,
  _args: string[],
  options: { readonly foreground?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  if (options.foreground) {
    // What is wrong with the home, or with what runs, the daemon says itself.
    await untilNoneEnds(context).catch(() => undefined)
    return becomeDaemon(home.root, terminal.json)
  }
  const running = await findRunningDaemon(context, startPatienceMs)
  if (running) {
    const goesOn = !(await isEnding(running).finally(running.close))
    if (goesOn) return printStarted(terminal, running.daemon, 'already running')
    await untilEnded(context, running.daemon)
  }
  try {
    const client = await startAndConnect(context)
    client.close()
    printStarted(terminal, client.daemon, 'started')
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    reportError(error, terminal.json)
    process.exitCode = exitFailed
  }
}

/**
 * The daemon in this very process, so that signals and exit codes need no forwarding and a service
 * manager watches the right pid. Loaded by its address: `cli` and `daemon` share no module by import.
 */
const becomeDaemon = async (root: string, json: boolean): Promise<void> => {
  process.argv = [process.execPath, daemonMain, '--home', root, '--foreground']
  if (json) process.argv.push('--json')
  process.title = 'doorward daemon'
  await import(pathToFileURL(daemonMain).href)
}

const printStarted = (
  terminal: Terminal,
  daemon: { readonly url: string; readonly pid: number },
  how: string,
): void => {
  if (terminal.json) terminal.printJson({ running: true, ...daemon })
  else terminal.print(`${how}: ${daemon.url} (pid ${daemon.pid})`)
}
