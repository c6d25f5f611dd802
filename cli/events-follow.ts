import type { EventRecord } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Context } from './context.ts'
import { eventLines } from './event-line.ts'
import { openEventStream } from './event-stream.ts'
import { findDaemon } from './find-daemon.ts'
import { interruptSignal, pause } from './interrupt.ts'
import { reachDaemon } from './reach-daemon.ts'

const firstPauseMs = 500
const longestPauseMs = 10_000
/** Of id, time, state, webhook, agent and duration: lines that come one by one share no columns. */
const usualWidths = [22, 8, 12, 16, 8, 5]

/**
 * Prints each change of an event from now on; with `--json` JSON lines. Comes back after a restart of
 * the daemon, without starting one itself then. Ends by `interrupted`.
 */
export const followEvents = async (context: Context, webhook?: string): Promise<void> => {
  const { terminal } = context
  const signal = interruptSignal()
  let lastId: string | undefined
  let pauseMs = firstPauseMs
  let client = await reachDaemon(context)
  let opened = 'following; Ctrl-C ends it'
  for (;;) {
    try {
      const stream = await openEventStream(client, signal, lastId)
      terminal.say(opened)
      for await (const { id, record } of stream) {
        lastId = id ?? lastId
        pauseMs = firstPauseMs
        if (webhook === undefined || record.webhook === webhook) printChange(record, context)
      }
    } catch (error) {
      if (!signal.aborted && !isGone(error)) throw error
    }
    client.close()
    if (signal.aborted) throw new DoorwardError('interrupted', 'interrupted')
    terminal.say('the daemon has gone; waiting for it')
    for (;;) {
      await pause(pauseMs, signal)
      pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      const found = await findDaemon(context).catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
      if (!found) continue
      client = found
      opened = 'the daemon is back'
      break
    }
  }
}

/** Whatever breaks a stream that was open means that its daemon has gone. */
const isGone = (error: unknown): boolean =>
  !(error instanceof DoorwardError) || error.code === 'daemon-unreachable'

const printChange = (record: EventRecord, { terminal }: Context): void => {
  if (terminal.json) {
    terminal.printJsonLine(record)
    return
  }
  const shape = { columns: terminal.columns, atLeast: usualWidths }
  for (const line of eventLines([record], new Date(), terminal.paint, shape)) terminal.print(line)
}
