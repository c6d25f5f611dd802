import type { Restarted, DaemonFile } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { version, handoverVersion } from '../../../shared/version.ts'
import type { Context } from '../../context.ts'
import { startDaemon } from './start.ts'
import { stopRunning } from './stop.ts'
import { findDaemon, findRunningDaemon, hasExited } from '../../daemon-client/connect.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { isStopping, waitForExit } from '../../daemon-client/ensure.ts'
import { setTimeout as delay } from 'node:timers/promises'

/** False for a daemon whose messages during a restart differ from those of this program. */
export const canHandOver = ({ handover }: DaemonFile): boolean => handover === handoverVersion

const stepMs = 250

/**
 * Waits until a daemon has finished the events that it has accepted, so that a stop loses none. `onWaiting` is
 * called once, with their number, if there are any. Throws what a request throws.
 */
export const untilIdle = async (
  client: Pick<Client, 'get'>,
  onWaiting: (events: number) => void = () => undefined,
): Promise<void> => {
  for (let isFirst = true; ; isFirst = false) {
    // The queue alone: the daemon may be of another version.
    const { queue } = await client.get<{ queue?: { running?: number; waiting?: number } }>(
      '/status',
    )
    const events = (queue?.running ?? 0) + (queue?.waiting ?? 0)
    if (events === 0) return
    if (isFirst) onWaiting(events)
    await delay(stepMs)
  }
}

/** Longer than a restart takes, including a token refresh that is in progress. */
const handOverLimitMs = 90_000

/**
 * Makes the running daemon start its successor and hand over to it without refusing a connection. Starts
 * one when none runs, unless `--no-start`, which throws `daemon-unreachable`. Throws `config-invalid`,
 * `home-insecure` or `restart-failed`, and then the old daemon keeps running.
 */
export const restartDaemon = async (context: Context): Promise<void> => {
  const { home, userAgent, terminal } = context
  // No version notice: the restart is about to change the version.
  const running = await (context.start ? findRunningDaemon : findDaemon)({ home, userAgent })
  if (running && (await isStopping(running))) {
    running.close()
    if (!context.start)
      throw new DoorwardError('stopping', 'the daemon is stopping', {
        hint: 'without --no-start the next one starts once it has stopped',
      })
    await waitForExit(context, running.daemon)
    return startDaemon(context, [], {})
  }
  const restarted = running && (await handOver(running, context))
  if (restarted) return printRestarted(restarted, terminal)
  if (running) {
    // Without a daemon there may be no home yet; the start creates it.
    await checkConfiguration(home)
    const pid = await stopRunning(context)
    if (pid !== undefined) terminal.say(`stopped (pid ${pid})`)
  }
  await startDaemon(context, [], {})
}

const checkConfiguration = async (home: Home): Promise<void> => {
  await loadConfig(home, await readEnvironment(home))
}

/**
 * Undefined from a daemon that cannot hand over to this program (older, or on Windows), once it has finished its
 * events, and from one that is stopping.
 */
const handOver = async (
  running: Client,
  { home, terminal }: Context,
): Promise<Restarted | undefined> => {
  try {
    if (!canHandOver(running.daemon)) {
      await checkConfiguration(home)
      terminal.say('the running daemon cannot hand over to this version: it is stopped and started')
      await untilIdle(running, (events) =>
        terminal.say(
          `waiting until it has finished ${events === 1 ? 'an event' : `${events} events`}; Ctrl-C leaves it running`,
        ),
      )
      return undefined
    }
    return await running.post<Restarted>('/daemon/restart', undefined, {
      timeoutMs: handOverLimitMs,
    })
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'not-found') return undefined
    if (await hasExited(error, running.daemon.pid)) return undefined
    throw error
  } finally {
    running.close()
  }
}

const printRestarted = ({ previous, ...now }: Restarted, terminal: Terminal): void => {
  const { pid, unfinished } = previous
  const work = unfinished === 1 ? 'an accepted event' : `${unfinished} accepted events`
  if (unfinished > 0) terminal.say(`the old one (pid ${pid}) finishes ${work}, then exits`)
  if (now.version !== version)
    terminal.say(
      `it is version ${toPlainLine(now.version)} and this command is ${version}: they belong to two installations`,
    )
  if (terminal.json) {
    const { status: _, ...daemon } = now
    terminal.printJson({ running: true, ...daemon, previous })
  } else terminal.print(`restarted: ${now.url} (pid ${now.pid}, before ${pid})`)
}
