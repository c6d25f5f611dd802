import { DoorwardError } from '../../shared/errors.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { Intake } from '../intake.ts'
import type { Listeners, Place } from '../http/server.ts'
import type { Log } from '../log/log.ts'
import type { Memory } from '../state.ts'
import type { Leadership } from '../leadership.ts'
import { answerWithToken } from '../handover/asked-tokens.ts'
import {
  type Channel,
  copyOfError,
  type Found,
  type FromNew,
  type FromOld,
  protocol,
} from './protocol.ts'
import { applyChange } from './snapshot.ts'

/*
 * The story of a restart, as the daemon tells it that is started for it: `hello` from the old one (which
 * sockets there are) -> bind those that there are not -> ready -> take over what is in memory, the office
 * (lock and tokens), the sockets -> serve -> follow what the old one still finishes.
 *
 * Should the old one be killed in the middle, this one goes on as if it had been started by hand.
 */

export type Predecessor = {
  /** The places whose sockets it will pass. */
  readonly places: readonly Place[]
  /** Follows it from now on. */
  readonly follow: (parts: FollowParts) => void
  /** Says that all is prepared; resolves with what the disk refused, or undefined when it was killed. */
  readonly office: (ready: Ready) => Promise<readonly TokenRecord[] | undefined>
  /** Asks for the sockets; resolves when all are there, false when it was killed before that. */
  readonly sockets: () => Promise<boolean>
  readonly serving: (found: Found) => Promise<void>
  readonly failed: (error: unknown) => Promise<void>
  /** Tells it to end too; resolves when it has. */
  readonly end: (atOnce: boolean) => Promise<void>
  /** Resolves when it has ended, or was killed. */
  readonly ended: Promise<void>
}

type Ready = { readonly version: string; readonly holding: string; readonly places: Place[] }

type FollowParts = {
  readonly memory: Memory
  readonly intake: Pick<Intake, 'elsewhere' | 'queue'>
  readonly listeners: Pick<Listeners, 'take'>
  readonly log: Log
  readonly office: Pick<Leadership, 'access'>
  /** It was killed, and has left what it did. */
  readonly killed: () => void
}

type FromOldKind<Kind extends FromOld['kind']> = FromOld & { kind: Kind }

/** Waits for the first word of the old one. Throws `restart-failed` for one of another version. */
export const meetPredecessor = async (channel: Channel<FromNew, FromOld>): Promise<Predecessor> => {
  const listeners = new Set<
    (message: FromOld, socket: Parameters<typeof channel.send>[1]) => void
  >()
  channel.listen((message, socket) => {
    for (const listener of listeners) listener(message, socket)
  })
  const until = async <Kind extends FromOld['kind']>(
    kind: Kind,
  ): Promise<FromOldKind<Kind> | undefined> =>
    new Promise((resolve) => {
      const look = (message: FromOld) => {
        if (message.kind !== kind) return
        listeners.delete(look)
        resolve(message as FromOldKind<Kind>)
      }
      listeners.add(look)
      void channel.closed.then(() => resolve(undefined))
    })

  let hasFinished = false
  void until('finished').then((message) => (hasFinished = message !== undefined))
  const hello = await until('hello')
  if (hello && hello.protocol !== protocol) {
    const error = new DoorwardError(
      'restart-failed',
      'the running daemon is of a version that cannot hand over to this one',
      { hint: 'doorward daemon stop, then: doorward daemon start' },
    )
    await channel.sendLast({ kind: 'failed', error: copyOfError(error) })
    throw error
  }

  return {
    places: hello?.places ?? [],
    follow: ({ memory, intake, listeners: own, log, office, killed }) => {
      const { elsewhere, queue } = intake
      listeners.add((message, socket) => {
        if (message.kind === 'access') void answerWithToken(message, office.access, channel.send)
        if (message.kind === 'socket' && socket) own.take(message.place, socket, log)
        applyChange(memory, message, performance.now())
        if (message.kind === 'memory')
          for (const { record } of message.memory.events.events) elsewhere.note(record)
        if (message.kind === 'event') {
          elsewhere.note(message.record)
          queue.look()
        }
      })
      const afterwards = async () => {
        await channel.closed
        if (hasFinished) return
        elsewhere.drop(memory)
        queue.look()
        log.warn('the daemon that handed over to this one was killed')
        killed()
      }
      void afterwards()
    },
    office: async (ready) => {
      const told = until('office')
      channel.send({ kind: 'ready', protocol, ...ready })
      return (await told)?.unsaved
    },
    sockets: async () => {
      const told = until('serve')
      channel.send({ kind: 'in-office' })
      return (await told) !== undefined
    },
    serving: async (found) => channel.sendLast({ kind: 'serving', ...found }),
    failed: async (error) => channel.sendLast({ kind: 'failed', error: copyOfError(error) }),
    end: async (atOnce) => {
      channel.send({ kind: 'end', atOnce })
      await channel.closed
    },
    ended: channel.closed,
  }
}
