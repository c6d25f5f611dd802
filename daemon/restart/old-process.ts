import { type ChildProcess, spawn } from 'node:child_process'
import type { Server } from 'node:net'
import type { Restarted } from '../../shared/api.ts'
import { daemonMain, nodeOptions } from '../../shared/client/spawn.ts'
import { DoorwardError, errorName, systemCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import type { LiveConfig } from '../config/live-config.ts'
import { createAskedTokens } from '../handover/asked-tokens.ts'
import type { Listeners, Place } from '../http/server.ts'
import type { EventStream } from '../http/sse.ts'
import type { Intake } from '../intake.ts'
import type { Leadership } from '../leadership.ts'
import type { Log, OpenLog } from '../log/log.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { Memory } from '../state.ts'
import type { DeliveryWaiters } from '../webhook/payload-shape.ts'
import type { RejectionLog } from '../webhook/rejection-log.ts'
import type { Predecessor } from './new-process.ts'
import { channelToNew, type Found, type FromNew, type FromOld, protocol } from './protocol.ts'
import { shareMemory } from './snapshot.ts'
import { nameMainProcess, type StandIn, standIn } from './supervisor.ts'

/*
 * The story of a restart, as the daemon tells it that runs:
 *
 *   read the configuration -> start the successor -> it is ready -> tell it all that is in memory, and
 *   from then on each change -> renew no more tokens -> pass the lock -> it is in office -> pass the
 *   sockets -> it serves -> let go, finish what was accepted, end
 *
 * Until it serves, the sockets are open here too, so nobody is refused; whatever goes wrong before that
 * ends the successor, and this daemon goes on as if nothing had happened.
 */

export type HandOver = {
  /** Throws `config-invalid`, `restart-failed`; and then this daemon goes on. */
  readonly restart: () => Promise<Restarted>
  /** Who has taken over; waits while that is being decided. Undefined while this daemon is in service. */
  readonly decided: () => Promise<Heir | undefined>
  /** The same without waiting. */
  readonly heir: () => Heir | undefined
  /** Ends a successor that is only just starting: the daemon is to stop. */
  readonly cancel: () => Promise<void>
}

/** The daemon that has taken over. */
export type Heir = Found & {
  readonly pid: number
  readonly access: Tokens['access']
  readonly stop: () => void
  /** Tells it that all has ended here, and lets go of it. */
  readonly finished: () => Promise<void>
}

type HandOverParts = {
  readonly home: Home
  readonly listeners: Listeners
  readonly memory: Memory
  readonly stream: Pick<EventStream, 'silence' | 'close'>
  readonly intake: Pick<Intake, 'unfinished'>
  readonly office: Pick<Leadership, 'putDown' | 'passTo' | 'takeBack'>
  readonly log: Log
  /** Throws what is wrong with the configuration. */
  readonly check: () => Promise<unknown>
  /** Answers as the only daemon again, and says so. */
  readonly serveAgain: () => Promise<void>
  /** The successor serves: let go of the sockets, and finish. */
  readonly retire: (heir: Heir) => void
  /** Somebody stops the daemon, by stopping the successor. */
  readonly end: (atOnce: boolean) => void
  readonly isStopping: () => boolean
}

const readyLimitMs = 15_000
const officeLimitMs = 10_000

export const createHandOver = (parts: HandOverParts): HandOver => {
  const { home, listeners, memory, stream, office, log } = parts
  let going: Promise<Restarted> | undefined
  let deciding: Promise<Heir | undefined> | undefined
  let heir: Heir | undefined
  let starting: Successor | undefined

  const refuseWhenStopping = (): void => {
    if (parts.isStopping()) throw new DoorwardError('stopping', 'the daemon is stopping')
  }
  const run = async (): Promise<Restarted> => {
    refuseWhenStopping()
    await parts.check()
    const successor = await startSuccessor(home, listeners.places)
    log.info({ successor: successor.pid }, 'restarting')
    starting = successor
    try {
      const ready = await successor.until('ready', readyLimitMs)
      starting = undefined
      refuseWhenStopping()
      if (ready.protocol !== protocol)
        throw failed('it is of a version that this one cannot hand over to', stopAndStart)
      const switched = switchTo(successor, ready)
      deciding = switched.catch(() => undefined)
      heir = await switched
      deciding = undefined
      parts.retire(heir)
      const previous = { pid: process.pid, unfinished: parts.intake.unfinished() }
      const { pid, url, publicUrl, startedAt } = heir
      const { version } = ready
      const found = { pid, url, ...(publicUrl !== undefined && { publicUrl }), version, startedAt }
      return { status: 'restarted', ...found, previous }
    } catch (error) {
      await successor.kill()
      starting = undefined
      deciding = undefined
      log.warn({ error: errorName(error) }, 'restart failed')
      // By `cancel`: whatever the successor said of its end, the old one does not go on.
      if (parts.isStopping())
        throw new DoorwardError('stopping', 'the daemon was stopped while it was restarted', {
          hint: 'doorward daemon start',
        })
      throw error instanceof DoorwardError ? error : failed(errorName(error))
    }
  }

  const switchTo = async (
    successor: Successor,
    { holding, places }: { readonly holding: string; readonly places: readonly string[] },
  ): Promise<Heir> => {
    const stopSharing = shareMemory(memory, successor.send)
    const unsaved = await office.putDown()
    try {
      await office.passTo(holding)
      successor.send({ kind: 'office', unsaved })
      await successor.until('in-office', officeLimitMs)
      // In one turn, so that each event has one number only: the successor gives it.
      stream.silence(true)
      const sockets = listeners.sockets()
      for (const place of places) successor.send({ kind: 'socket', place }, sockets.get(place))
      const heirAt = heirOf(successor)
      successor.send({ kind: 'serve' })
      return heirAt(await successor.until('serving', officeLimitMs))
    } catch (error) {
      stopSharing()
      // Before anything is done here that two must not do.
      await successor.kill()
      // On a full disk it cannot do all of that; whoever follows events is to hear of them all the same.
      await goOn(unsaved).catch((failure: unknown) =>
        log.error({ error: errorName(failure) }, 'not all goes on'),
      )
      stream.silence(false)
      // Who followed comes back for what was not sent.
      stream.close()
      throw error
    }
  }

  /** After a successor that failed. */
  const goOn = async (unsaved: readonly TokenRecord[]): Promise<void> => {
    await office.takeBack(unsaved)
    await parts.serveAgain()
  }

  const heirOf = (successor: Successor): ((found: Found) => Heir) => {
    const tokens = createAskedTokens(successor.send)
    successor.listen((message) => {
      if (message.kind === 'token') tokens.answered(message)
      if (message.kind === 'end') parts.end(message.atOnce)
    })
    void successor.ended.then(() => tokens.giveUp())
    return ({ url, publicUrl, startedAt }) => ({
      pid: successor.pid,
      url,
      publicUrl,
      startedAt,
      access: tokens.access,
      stop: successor.stop,
      finished: async () => {
        await successor.sendLast({ kind: 'finished' })
        successor.release()
      },
    })
  }

  return {
    restart: async () => {
      if (heir) throw new DoorwardError('stopping', 'the daemon was restarted just now')
      going ??= run().finally(() => (going = undefined))
      return going
    },
    decided: async () => heir ?? deciding,
    heir: () => heir,
    cancel: async () => {
      // On its own it would take us for killed, and start.
      await starting?.kill()
      await going?.catch(() => undefined)
    },
  }
}

const stopAndStart = 'doorward daemon stop, then: doorward daemon start'

/** The new daemon, as the old one that has started it sees it. */
type Successor = {
  readonly pid: number
  readonly send: (message: FromOld, socket?: Server) => void
  readonly sendLast: (message: FromOld) => Promise<void>
  /** Waits for a message of this kind. Throws `restart-failed` when it fails or takes longer. */
  readonly until: <Kind extends FromNew['kind']>(
    kind: Kind,
    limitMs: number,
  ) => Promise<FromNew & { kind: Kind }>
  readonly listen: (listener: (message: FromNew) => void) => void
  /** Resolves when it has ended. */
  readonly ended: Promise<void>
  /** Asks it to end in the usual way. */
  readonly stop: () => void
  /** Ends it at once; resolves when it has gone. */
  readonly kill: () => Promise<void>
  /** Lets go of it: nothing of it keeps this process any more. */
  readonly release: () => void
}

/**
 * Starts the daemon that is on the disk now, by the same program and with the same environment. Throws
 * `restart-failed` when it cannot be started.
 */
const startSuccessor = async (home: Home, places: readonly Place[]): Promise<Successor> => {
  const args = [...nodeOptions, daemonMain, '--home', home.root, '--take-over']
  const child = spawn(process.execPath, args, {
    cwd: home.root,
    detached: true,
    windowsHide: true,
    // What it says goes where ours goes.
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Times and maps as they are; JSON would make text of them.
    serialization: 'advanced',
  })
  const { pid } = child
  if (pid === undefined) throw await notStarted(child)
  const channel = channelToNew(child)
  let how = 'said nothing'
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      how = `ended with ${signal ?? code}`
      resolve()
    })
  })
  channel.send({ kind: 'hello', protocol, places })

  const until: Successor['until'] = async (kind, limitMs) =>
    new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer)
        child.removeListener('message', look)
        act()
      }
      const look = (message: unknown) => {
        const said = message as FromNew
        if (said.kind === 'failed')
          settle(() => reject(failed(said.error.message, said.error.hint)))
        else if (said.kind === kind) settle(() => resolve(said as FromNew & { kind: typeof kind }))
      }
      const timer = setTimeout(
        () => settle(() => reject(failed(`it was not ready within ${limitMs / 1000} s`))),
        limitMs,
      )
      child.on('message', look)
      void ended.then(() => settle(() => reject(failed(`it ${how}`))))
    })
  return {
    pid,
    send: channel.send,
    sendLast: channel.sendLast,
    until,
    listen: (listener) => channel.listen(listener),
    ended,
    // A signal to one that has ended goes nowhere.
    stop: () => void child.kill('SIGTERM'),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
    release: () => {
      channel.close()
      child.unref()
    },
  }
}

const notStarted = async (child: ChildProcess): Promise<DoorwardError> => {
  const error = await new Promise<unknown>((resolve) => child.once('error', resolve))
  return failed(`${process.execPath} cannot be run (${systemCode(error)})`)
}

/** Why the old daemon stays. */
const failed = (why: string, hint?: string): DoorwardError =>
  new DoorwardError(
    'restart-failed',
    `the new daemon did not come up, the old one goes on: ${why}`,
    {
      hint: hint ?? 'doorward daemon logs',
    },
  )

export type RetireParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly isForeground: boolean
  readonly intake: Pick<Intake, 'queue' | 'unfinished'>
  readonly predecessor?: Pick<Predecessor, 'ended'> | undefined
  readonly live: Pick<LiveConfig, 'close'>
  readonly listeners: Pick<Listeners, 'leave'>
  readonly stream: Pick<EventStream, 'close'>
  readonly learners: Pick<DeliveryWaiters, 'close'>
  readonly refusals: Pick<RejectionLog, 'close'>
  readonly log: Log
  readonly closeLog: OpenLog['close']
}

/** How long connections from before a restart are served: longer than a request may take. */
const leaveLimitMs = 35_000

/**
 * The end of a daemon that has handed over: another one is in service by now, and nothing of it is touched
 * any more. Lets go of the sockets, and finishes what was accepted. `stays` is called when this process is
 * to stay as long as the daemon of the home lives.
 */
export const retire = async (
  parts: RetireParts,
  heir: Heir,
  stays: (remaining: StandIn) => void,
): Promise<void> => {
  const { home, intake, predecessor, live, listeners, stream, learners, refusals, log } = parts
  const isWatched = parts.isForeground || !(await nameMainProcess(heir.pid, parts.processEnv))
  const remaining = isWatched ? standIn(home) : undefined
  if (remaining) stays(remaining)
  log.info({ unfinished: intake.unfinished() }, 'handed over, finishing what was accepted')
  const left = listeners.leave(leaveLimitMs)
  learners.close()
  stream.close()
  await live.close()
  await left
  await Promise.all([intake.queue.drain(), predecessor?.ended])
  refusals.close()
  log.info('finished')
  await parts.closeLog()
  await heir.finished()
  if (remaining) process.exitCode = (await remaining.ended) ? 0 : 1
}
