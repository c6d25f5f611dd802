import type { ChildProcess } from 'node:child_process'
import { Server } from 'node:net'
import type { FromNew, FromOld } from './messages.ts'

/** One end of the channel between an old and a new daemon. */
export type Channel<Out, In> = {
  /** In order. A message to one that has gone is lost: `closed` tells of that. */
  readonly send: (message: Out, socket?: Server) => void
  /** The same; resolves once it is on its way, so that the channel can be closed. */
  readonly sendLast: (message: Out) => Promise<void>
  /** Calls back with each message, in order, from the next turn on. */
  readonly listen: (listener: (message: In, socket: Server | undefined) => void) => void
  /** Resolves when the other process has gone, or has let go of the channel. */
  readonly closed: Promise<void>
  readonly isOpen: () => boolean
  readonly close: () => void
}

type End = Pick<ChildProcess, 'send' | 'connected' | 'on' | 'once' | 'disconnect'>

const channelAt = <Out extends FromOld | FromNew, In extends FromOld | FromNew>(
  end: End,
): Channel<Out, In> => ({
  send: (message, socket) => {
    if (end.connected) end.send(message, socket, {}, () => undefined)
  },
  sendLast: async (message) =>
    new Promise<void>((resolve) => {
      if (end.connected) end.send(message, undefined, {}, () => resolve())
      else resolve()
    }),
  listen: (listener) =>
    void end.on('message', (message, handle) =>
      listener(message as In, handle instanceof Server ? handle : undefined),
    ),
  closed: new Promise<void>((resolve) => {
    if (end.connected) end.once('disconnect', () => resolve())
    else resolve()
  }),
  isOpen: () => end.connected,
  close: () => {
    if (end.connected) end.disconnect()
  },
})

/** The end of a daemon that has started its successor. */
export const channelToNew = (child: ChildProcess): Channel<FromOld, FromNew> => channelAt(child)

/** The end of a successor; undefined when nobody has started this process as one. */
export const channelToOld = (): Channel<FromNew, FromOld> | undefined =>
  process.send === undefined ? undefined : channelAt(process as unknown as End)
