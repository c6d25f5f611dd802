import type { EventRecord, Status } from '../shared/api.ts'
import type { Client } from '../shared/client.ts'
import { plainLine } from '../shared/plain-text.ts'
import { isAlive } from '../shared/process-state.ts'
import type { Context } from './context.ts'
import { openEventStream } from './event-stream.ts'
import { findRunningDaemon } from './find-daemon.ts'
import { interruptSignal, pause } from './interrupt.ts'

/** Asks the daemon to end and waits until its process has gone; none running is fine. */
export const stopDaemon = async (context: Context): Promise<void> => {
  const { terminal } = context
  const pid = await stopRunning(context)
  if (terminal.json) terminal.printJson({ running: false, ...(pid === undefined ? {} : { pid }) })
  else terminal.print(pid === undefined ? 'not running' : `stopped (pid ${pid})`)
}

/**
 * Stops the daemon and gives its pid, or undefined when none ran. What it had to drop is said: only the
 * sender can bring it again.
 */
export const stopRunning = async (context: Context): Promise<number | undefined> => {
  const { terminal } = context
  const { home, userAgent } = context
  // Of which version it is does not matter any more.
  const client = await findRunningDaemon({ home, userAgent })
  if (!client) return undefined
  const { pid } = client.daemon
  const dropped: EventRecord[] = []
  try {
    const { queue } = await client.get<Status>('/status')
    const signal = interruptSignal()
    if (queue.running + queue.waiting > 0) await collectDropped(client, signal, dropped)
    await client.post('/daemon/shutdown')
    if (queue.running + queue.waiting > 0)
      terminal.say(`waiting for ${queue.running} running and ${queue.waiting} waiting events`)
    for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250))
      await pause(waitMs, signal)
  } finally {
    client.close()
    for (const record of dropped) terminal.warn(droppedLine(record))
  }
  return pid
}

/** Collects from now on until the daemon ends; returns once nothing can be missed. */
const collectDropped = async (
  client: Client,
  signal: AbortSignal,
  dropped: EventRecord[],
): Promise<void> => {
  const stream = await openEventStream(client, signal)
  const collect = async () => {
    for await (const { record } of stream) if (record.state === 'dropped') dropped.push(record)
  }
  // However the stream ends, the daemon has gone.
  void collect().catch(() => undefined)
}

const droppedLine = ({ id, webhook, deliveryId, receivedAt }: EventRecord): string =>
  plainLine(
    `dropped ${id} of ${webhook ?? 'no webhook'}, received ${receivedAt}${deliveryId === undefined ? '' : `, delivery ${deliveryId}`}: deliver it again from the sender`,
  )
