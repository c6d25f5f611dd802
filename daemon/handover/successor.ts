import { type ChildProcess, spawn } from 'node:child_process'
import type { Server } from 'node:net'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { daemonMain, nodeOptions } from '../../shared/client/spawn.ts'
import type { Place } from '../http/listeners.ts'
import { channelToNew } from './channel.ts'
import { type FromNew, type FromOld, protocol } from './messages.ts'

/** The new daemon, as the old one that has started it sees it. */
export type Successor = {
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
export const startSuccessor = async (home: Home, places: readonly Place[]): Promise<Successor> => {
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
export const failed = (why: string, hint?: string): DoorwardError =>
  new DoorwardError(
    'restart-failed',
    `the new daemon did not come up, the old one goes on: ${why}`,
    {
      hint: hint ?? 'doorward daemon logs',
    },
  )
