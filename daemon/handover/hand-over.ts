import type { Restarted } from '../../shared/api.ts'
import { DoorwardError, nameOf } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import type { EventStream } from '../http/event-stream.ts'
import type { Intake } from '../intake.ts'
import type { Listeners } from '../http/listeners.ts'
import type { Log } from '../log/log.ts'
import type { Memory } from '../memory.ts'
import type { Tokens } from '../oauth/token/tokens.ts'
import type { Office } from '../office.ts'
import type { TokenRecord } from '../oauth/token/token-record.ts'
import { createAskedTokens } from './asked-tokens.ts'
import { type Found, protocol } from './messages.ts'
import { shareMemory } from './share-memory.ts'
import { type Successor, failed, startSuccessor } from './successor.ts'

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

export type HandOverParts = {
  readonly home: Home
  readonly listeners: Listeners
  readonly memory: Memory
  readonly stream: Pick<EventStream, 'silence' | 'close'>
  readonly intake: Pick<Intake, 'unfinished'>
  readonly office: Pick<Office, 'putDown' | 'passTo' | 'takeBack'>
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
      log.warn({ error: nameOf(error) }, 'restart failed')
      // By `cancel`: whatever the successor said of its end, the old one does not go on.
      if (parts.isStopping())
        throw new DoorwardError('stopping', 'the daemon was stopped while it was restarted', {
          hint: 'doorward daemon start',
        })
      throw error instanceof DoorwardError ? error : failed(nameOf(error))
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
        log.error({ error: nameOf(failure) }, 'not all goes on'),
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
