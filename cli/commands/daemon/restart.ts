import type { Restarted } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { version } from '../../../shared/version.ts'
import type { Context } from '../../context.ts'
import { startDaemon } from './start.ts'
import { stopRunning } from './stop.ts'
import { findDaemon, findRunningDaemon, hasEnded } from '../../daemon-client/connect.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { isEnding, waitForExit } from '../../daemon-client/ensure.ts'

/** Longer than a daemon may take to start and to hand over, with a refresh of a token on its way. */
const handOverLimitMs = 90_000

/**
 * Lets the running daemon start its successor and hand over to it, so that nobody is refused meanwhile;
 * starts one when none runs, unless `--no-start`: throws `daemon-unreachable` then. A configuration that
 * cannot be used leaves the running one alone: throws `config-invalid`, `home-insecure`, or
 * `restart-failed` when the new one does not come up.
 */
export const restartDaemon = async (context: Context): Promise<void> => {
  const { home, userAgent, terminal } = context
  // Not as for other commands: that its version is another is about to change.
  const running = await (context.start ? findRunningDaemon : findDaemon)({ home, userAgent })
  if (running && (await isEnding(running))) {
    running.close()
    if (!context.start)
      throw new DoorwardError('stopping', 'the daemon is stopping', {
        hint: 'without --no-start the next one is started once it has ended',
      })
    await waitForExit(context, running.daemon)
    return startDaemon(context, [], {})
  }
  const restarted = running && (await handOver(running))
  if (restarted) return printRestarted(restarted, terminal)
  if (running) {
    // Without a daemon there may be no home yet; the start makes it.
    await loadConfig(home, await readEnvironment(home))
    const pid = await stopRunning(context)
    if (pid !== undefined) terminal.say(`stopped (pid ${pid})`)
  }
  await startDaemon(context, [], {})
}

/** Undefined from a daemon that knows nothing of it, an older one or one on Windows, and from one that ends. */
const handOver = async (running: Client): Promise<Restarted | undefined> => {
  try {
    return await running.post<Restarted>('/daemon/restart', undefined, {
      timeoutMs: handOverLimitMs,
    })
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'not-found') return undefined
    if (await hasEnded(error, running.daemon.pid)) return undefined
    throw error
  } finally {
    running.close()
  }
}

const printRestarted = ({ previous, ...now }: Restarted, terminal: Terminal): void => {
  const { pid, unfinished } = previous
  const work = unfinished === 1 ? 'an accepted event' : `${unfinished} accepted events`
  if (unfinished > 0) terminal.say(`the old one (pid ${pid}) finishes ${work}, then ends`)
  if (now.version !== version)
    terminal.say(
      `it is version ${toPlainLine(now.version)} and this command ${version}: they are of two installations`,
    )
  if (terminal.json) {
    const { status: _, ...daemon } = now
    terminal.printJson({ running: true, ...daemon, previous })
  } else terminal.print(`restarted: ${now.url} (pid ${now.pid}, before ${pid})`)
}
