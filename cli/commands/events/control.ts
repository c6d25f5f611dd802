import type { EventLink, EventRecord, ForgottenHistory } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm } from '../../terminal/input.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import { openLink, type OpenOptions } from '../open.ts'
import { isFinished } from './format.ts'
import { untilFinished, waitForEvent } from './wait.ts'

export type RetryOptions = { readonly wait?: boolean; readonly again?: boolean }

/**
 * Runs what failed of an event again, with `--again` all of it as its webhook is now. With `--wait` it prints
 * the agent's answer. Throws `event-not-found`, or `event-not-retryable` with the reason.
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

/**
 * Cancels an event and waits until it has ended. Throws `event-not-found`, or `event-not-cancellable` for
 * one that is final, also where it finished before it could be stopped.
 */
export const cancelEvent = async (
  context: Context,
  [id = '']: (string | undefined)[],
): Promise<void> => {
  const { terminal } = context
  const event = await withDaemon(context, async (client) =>
    untilFinished(
      client,
      async () => {
        const { state } = await client.post<EventRecord>(`/events/${encodeURIComponent(id)}/cancel`)
        if (!isFinished(state)) terminal.say('stopping what runs ...')
        return id
      },
      interruptSignal(),
    ),
  )
  if (event.code !== 'event-cancelled')
    throw new DoorwardError(
      'event-not-cancellable',
      `this event cannot be cancelled: it was ${event.state} before it could be stopped`,
      { hint: `doorward events show ${id}` },
    )
  if (terminal.json) terminal.printJson(event)
  else terminal.print(`${event.id} ${event.state}`)
}

export type ForgetOptions = { readonly all?: boolean | undefined; readonly yes?: boolean }

/**
 * Removes the texts of a finished event from memory and the history, or with `--all` the whole history. Throws
 * `event-not-found` or `event-not-finished`.
 */
export const forgetEvent = async (
  context: Context,
  [id]: readonly (string | undefined)[],
  { all, yes }: ForgetOptions,
): Promise<void> => {
  const { terminal } = context
  if ((id === undefined) === !all)
    throw new DoorwardError('usage', 'name one event, or all of the history with --all', {
      hint: 'doorward events forget --help',
    })
  if (id === undefined) return forgetHistory(context, yes)
  const event = await withDaemon(context, async (client) =>
    client.delete<EventRecord>(`/events/${encodeURIComponent(id)}`),
  )
  if (terminal.json) terminal.printJson(event)
  else
    terminal.print(`${event.id} forgotten: its prompt, answer, payload and conversation are gone`)
}

const forgetHistory = async (context: Context, yes = false): Promise<void> => {
  const { terminal } = context
  const question = 'remove the whole history of events?'
  const refusal = 'forget --all removes what the disk has of all events'
  const agreed =
    yes || (await confirm({ question, refusal, interrupted: 'nothing was removed' }, terminal))
  if (!agreed) return terminal.say('nothing was removed')
  const removed = await withDaemon(context, (client) => client.delete<ForgottenHistory>('/events'))
  if (terminal.json) terminal.printJson(removed)
  else terminal.print(`removed the history: ${removed.files} files, ${removed.bytes} bytes`)
}

/**
 * Opens the view of an event on the page, or prints a link to it (`openLink`). Throws `event-not-found`.
 */
export const openEvent = async (
  context: Context,
  [id = '']: string[],
  options: OpenOptions,
): Promise<void> => {
  const link = await withDaemon(context, (client) =>
    client.post<EventLink>(`/events/${encodeURIComponent(id)}/link`),
  )
  return openLink(context, link, options)
}
