import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { toPlainLine, toPlainText } from '../../../shared/text.ts'
import { openEventStream } from '../../daemon-client/event-stream.ts'
import { exitFailed } from '../../exit-code.ts'
import { holdInterrupt, showWaiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { emptyAnswer, isFinished, nextStep } from './format.ts'

/**
 * Calls `send`, which returns an event id, and waits until that event is finished. The stream is opened
 * first, so that no change is missed; `changed` gets each change but the last. Throws `interrupted` or
 * `daemon-unreachable`.
 */
export const untilFinished = async (
  client: Client,
  send: () => Promise<string>,
  interrupt: AbortSignal,
  changed: (record: EventRecord) => void = () => undefined,
): Promise<EventDetail> => {
  const control = new AbortController()
  const signal = AbortSignal.any([interrupt, control.signal])
  const stream = await openEventStream(client, signal)
  try {
    const id = await send()
    const detail = () => client.get<EventDetail>(`/events/${encodeURIComponent(id)}`)
    const now = await detail()
    if (isFinished(now.state)) return now
    for await (const { record } of stream) {
      if (record.id !== id) continue
      if (isFinished(record.state)) return await detail()
      changed(record)
    }
  } catch (error) {
    if (interrupt.aborted) throw new DoorwardError('interrupted', 'interrupted')
    throw error
  } finally {
    control.abort()
  }
  throw new DoorwardError('daemon-unreachable', 'the daemon stopped before the event finished')
}

/**
 * Calls `send`, which returns an event id, shows the event's progress and prints the agent's answer.
 * Ctrl-C stops the waiting, not the event. Throws what `untilFinished` and `printFinished` throw.
 */
export const waitForEvent = async (
  client: Client,
  terminal: Terminal,
  send: () => Promise<string>,
): Promise<void> => {
  const { signal, letGo } = holdInterrupt()
  let id: string | undefined
  const sendOne = async () => (id = await send())
  const sayTry = printRetries(terminal)
  // Without a spinner, a line per state would be noise.
  const waiting = terminal.isInteractive
    ? await showWaiting('sending', terminal, { signal, interrupt: 'stops waiting' })
    : undefined
  const changed = (record: EventRecord) => {
    sayTry(record)
    waiting?.now(describeProgress(record))
  }
  try {
    const ended = await untilFinished(client, sendOne, signal, changed)
    waiting?.stop()
    printFinished(ended, terminal)
  } catch (error) {
    if (signal.aborted && id !== undefined)
      terminal.say(`the event continues in the background: doorward events show ${id}`)
    throw error
  } finally {
    waiting?.stop()
    letGo()
  }
}

/** `running claude`, `delivering to slack:#reviews`. */
const describeProgress = ({ state, agent, targets }: EventRecord): string => {
  if (state === 'waiting') return 'waiting for an approval'
  if (state === 'running') return toPlainLine(`running ${agent ?? ''}`)
  if (state !== 'delivering') return state === 'accepted' ? 'queued' : state
  const waiting = targets.filter((target) => target.state === 'waiting')
  return toPlainLine(`delivering to ${waiting.map(({ target }) => target).join(', ')}`)
}

/** Prints on standard error each time a target is retried, and why. */
export const printRetries = (terminal: Pick<Terminal, 'say'>): ((record: EventRecord) => void) => {
  const said = new Set<string>()
  return ({ targets }) => {
    for (const { target, state, attempts, detail } of targets) {
      if (state !== 'waiting' || detail === undefined) continue
      const line = `try ${attempts}: ${target}: ${detail}`
      if (said.has(line)) continue
      said.add(line)
      terminal.say(toPlainLine(line))
    }
  }
}

/**
 * Prints the answer of a finished event, or on standard error why no agent ran. Throws the reason of one
 * that failed or was dropped.
 */
const printFinished = (event: EventDetail, terminal: Terminal): void => {
  if (terminal.json) {
    terminal.printJson(event)
    if (event.state === 'failed' || event.state === 'dropped') process.exitCode = exitFailed
    return
  }
  // Print the answer even when its delivery failed.
  if (event.result !== undefined) terminal.print(toPlainText(event.result).replace(/\n$/, ''))
  if (event.result?.trim() === '') terminal.say(emptyAnswer)
  if ((event.state === 'filtered' || event.state === 'duplicate') && event.detail !== undefined)
    terminal.say(toPlainLine(event.detail))
  const hint = event.state === 'duplicate' ? nextStep(event) : undefined
  if (hint !== undefined) terminal.say(`hint: ${hint}`)
  if (event.state === 'failed' || event.state === 'dropped')
    throw new DoorwardError(
      (event.code ?? 'internal') as ErrorCode,
      `${event.id} ${event.state}${event.stage ? ` at ${event.stage}` : ''}${event.detail ? `: ${event.detail}` : ''}`,
      { hint: `doorward events show ${event.id}` },
    )
}
