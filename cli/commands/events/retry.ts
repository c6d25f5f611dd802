import type { EventRecord } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { waitForEvent } from './wait.ts'

export type RetryOptions = { readonly wait?: boolean; readonly again?: boolean }

/**
 * Runs what failed of an event again, with `--again` all of it as its webhook is now. With `--wait` it prints the agent's answer. Throws
 * `event-not-found`, or `event-not-retryable` with the reason.
 */
export const retryEvent = async (
  context: Context,
  [id = '']: (string | undefined)[],
  { wait, again }: RetryOptions,
): Promise<void> => {
  const { terminal } = context
  const retry = async (client: Client) =>
    client.post<EventRecord>(`/events/${encodeURIComponent(id)}/retry${again ? '?again=true' : ''}`)
  await withDaemon(context, async (client) => {
    if (wait) {
      await waitForEvent(client, terminal, async () => {
        await retry(client)
        terminal.say(`${id} queued`)
        return id
      })
      return
    }
    const record = await retry(client)
    if (terminal.json) terminal.printJson(record)
    else terminal.print(`${record.id} ${record.state}`)
  })
}
