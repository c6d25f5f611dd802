import type { EventRecord } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { isFinished } from './format.ts'
import { waitForEvent } from './wait.ts'

export type ApproveOptions = { readonly without?: readonly string[]; readonly wait?: boolean }
export type AgainOptions = { readonly remark?: string; readonly wait?: boolean }

/** Sends the answer of an event that waits. Throws `event-not-waiting`, or `approval-mismatch`. */
export const approveEvent = async (
  context: Context,
  [id = '']: string[],
  { without = [], wait }: ApproveOptions,
): Promise<void> => {
  const places = without.flatMap((text) => text.split(',')).map(toPlace)
  await act(context, id, 'approve', { without: places, where: 'cli' }, wait)
}

/** `1` is the first comment, as `events show` counts them. */
const toPlace = (text: string): number => {
  const place = /^[1-9]\d{0,3}$/.test(text.trim()) ? Number(text) - 1 : undefined
  if (place !== undefined) return place
  throw new DoorwardError('usage', `--without ${text} is not the number of a comment`, {
    hint: 'the first is 1: --without 1,3',
  })
}

/** Ends an event that waits: nothing of it is sent. Throws `event-not-waiting`. */
export const rejectEvent = async (context: Context, [id = '']: string[]): Promise<void> =>
  act(context, id, 'reject', { where: 'cli' })

/** Runs the agent of an event that waits once more, with a remark. Throws `event-not-waiting`. */
export const againEvent = async (
  context: Context,
  [id = '']: string[],
  { remark, wait }: AgainOptions,
): Promise<void> => {
  if (remark === undefined)
    throw new DoorwardError('usage', 'what should the agent do otherwise?', {
      hint: `doorward events again ${id} --remark "leave out the style remarks"`,
    })
  await act(context, id, 'again', { remark, where: 'cli' }, wait)
}

/** Sends the answer of a dry run after all. Throws `event-not-retryable`. */
export const deliverEvent = async (
  context: Context,
  [id = '']: string[],
  { wait }: { readonly wait?: boolean },
): Promise<void> => act(context, id, 'deliver', undefined, wait)

const act = async (
  context: Context,
  id: string,
  action: 'approve' | 'reject' | 'again' | 'deliver',
  body: object | undefined,
  wait = false,
): Promise<void> => {
  const { terminal } = context
  const post = async (client: Client) =>
    client.post<EventRecord>(`/events/${encodeURIComponent(id)}/${action}`, body)
  await withDaemon(context, async (client) => {
    if (wait)
      return waitForEvent(client, terminal, async () => {
        const { id: whole } = await post(client)
        return whole
      })
    const record = await post(client)
    if (terminal.json) return terminal.printJson(record)
    terminal.print(`${record.id} ${record.state}`)
    if (!isFinished(record.state)) terminal.say(`hint: doorward events show ${record.id}`)
  })
}
