import { pathToFileURL } from 'node:url'
import { portTakenHint, findListeningProcess } from '../../../shared/client/discovery.ts'
import { daemonMain } from '../../../shared/client/spawn.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import type { Home } from '../../../shared/home/home.ts'
import { networkWarnings } from '../../../shared/network/variables.ts'
import type { Context } from '../../context.ts'
import { findRunningDaemon, startPatienceMs } from '../../daemon-client/connect.ts'
import { isStopping, waitForExit, waitForStopping } from '../../daemon-client/ensure.ts'
import { startAndConnect, StartError } from '../../daemon-client/start.ts'
import { reportError } from '../../errors.ts'
import { exitFailed } from '../../exit-code.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { printWarnings } from './reload.ts'

/**
 * Starts the daemon unless it runs, and prints its URL and pid; waits for one that is stopping. Only
 * `--foreground` exits with 78.
 */
export const startDaemon = async (
  context: Context,
  _args: string[],
  options: { readonly foreground?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  if (options.foreground) {
    // The daemon itself reports problems with the home or with another daemon.
    await waitForStopping(context).catch(() => undefined)
    return becomeDaemon(home.root, terminal.json)
  }
  const running = await findRunningDaemon(context, startPatienceMs)
  if (running) {
    const goesOn = !(await isStopping(running).finally(running.close))
    if (goesOn) return printStarted(terminal, running.daemon, 'already running')
    await waitForExit(context, running.daemon)
  }
  try {
    const client = await startAndConnect(context)
    client.close()
    printStarted(terminal, client.daemon, 'started')
    // Without these nothing beyond this machine works; all others are in `doorward status`.
    if (!terminal.json) printWarnings(networkWarnings(await readEnvironment(home)), terminal)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    reportError(error, terminal.json)
    process.exitCode = exitFailed
  }
}

/**
 * Runs the daemon in this process, so that signals and exit codes need no forwarding and a service manager
 * watches the right pid. Loaded by its path, as `cli` never imports `daemon`.
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

/**
 * What to do about another program on the port of this home's daemon; undefined when there is none, or
 * the system does not say. Never throws: the start reports an invalid configuration.
 */
export const portTaken = async (home: Home): Promise<string | undefined> => {
  const port = await readPort(home).catch(() => undefined)
  const holder = port === undefined ? undefined : await findListeningProcess(port)
  if (!holder) return undefined
  return `port ${port} is in use by ${holder.name} (pid ${holder.pid}): ${portTakenHint}`
}

const readPort = async (home: Home): Promise<number> => {
  const { gateway } = await loadConfig(home, await readEnvironment(home))
  return gateway.server.port
}
