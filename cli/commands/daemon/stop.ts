import type { EventRecord, Status } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { waitForProcessExit } from '../../../shared/client/discovery.ts'
import type { Context } from '../../context.ts'
import { openEventStream } from '../../daemon-client/event-stream.ts'
import { findRunningDaemon, hasExited } from '../../daemon-client/connect.ts'
import { interruptSignal, pause } from '../../terminal/spinner.ts'

/**
 * Stops the daemon and waits until its process has exited; it is no error when none runs. Throws what
 * `findRunningDaemon` throws.
 */
export const stopDaemon = async (context: Context): Promise<void> => {
  const { terminal } = context
  const pid = await stopRunning(context)
  if (terminal.json) terminal.printJson({ running: false, ...(pid === undefined ? {} : { pid }) })
  else terminal.print(pid === undefined ? 'not running' : `stopped (pid ${pid})`)
}

/**
 * Stops the daemon and returns its pid, or undefined when none ran. It reports what was dropped or cut
 * off: only the sender can deliver it again.
 */
export const stopRunning = async (context: Context): Promise<number | undefined> => {
  const { terminal } = context
  const { home, userAgent } = context
  // No version notice before a stop.
  const client = await findRunningDaemon({ home, userAgent })
  if (!client) return undefined
  const { pid } = client.daemon
  const lost: EventRecord[] = []
  try {
    const { queue, approvals = [] } = await client.get<Status>('/status')
    const signal = interruptSignal()
    if (queue.running + queue.waiting + approvals.length > 0)
      await collectLost(client, signal, lost)
    await client.post('/daemon/shutdown')
    if (queue.running + queue.waiting > 0)
      terminal.say(`waiting for ${queue.running} running and ${queue.waiting} waiting events`)
    if (approvals.length > 0)
      terminal.say(
        `lost with the stop: ${approvals.length} ${approvals.length === 1 ? 'answer that waits' : 'answers that wait'} for an approval`,
      )
    await waitForProcessExit(pid, { pause: async (ms) => pause(ms, signal) })
  } catch (error) {
    if (!(await hasExited(error, pid))) throw error
  } finally {
    client.close()
    for (const record of lost) terminal.warn(lostLine(record))
  }
  return pid
}

/** Collects final events until the daemon exits; returns once no event can be missed. */
const collectLost = async (
  client: Client,
  signal: AbortSignal,
  lost: EventRecord[],
): Promise<void> => {
  const stream = await openEventStream(client, signal)
  const collect = async () => {
    for await (const { record } of stream) if (isLost(record)) lost.push(record)
  }
  // Whatever ends the stream, the daemon has exited.
  void collect().catch(() => undefined)
}

/** An answer that was not delivered counts as lost: it cannot be retried after the stop. */
const isLost = ({ state, stage, code }: EventRecord): boolean =>
  state === 'dropped' || (state === 'failed' && (code === 'agent-stopped' || stage === 'deliver'))

const lostLine = (record: EventRecord): string => {
  const { state, id, webhook, deliveryId, receivedAt } = record
  const delivery = deliveryId === undefined ? '' : `, delivery ${deliveryId}`
  return toPlainLine(
    `${state} ${id} of ${webhook ?? 'no webhook'}, received ${receivedAt}${delivery}: ${howLost(record)}deliver it again from the sender`,
  )
}

/** The detail of a delivery names its target and whether it may have arrived. */
const howLost = ({ state, stage, detail }: EventRecord): string => {
  if (state === 'dropped') return ''
  if (stage !== 'deliver') return 'its agent was stopped; '
  return `the delivery of its answer failed${detail === undefined ? '' : ` (${detail})`}; `
}
