import type { EventDetail, EventRecord } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { toPlainLine, toPlainText } from '../../../shared/text.ts'
import { openEventStream } from '../../daemon-client/event-stream.ts'
import { exitFailed } from '../../exit-code.ts'
import { holdInterrupt, showWaiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { emptyAnswer, isFinished } from './format.ts'

/**
 * Does what makes an event (`send` gives its id) and waits until that event is finished; the stream is
 * opened first, so that nothing is missed. `changed` gets each change before the end. Throws
 * `interrupted`, or `daemon-unreachable`.
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
  throw new DoorwardError('daemon-unreachable', 'the daemon ended before the event was finished')
}

/**
 * Does what makes an event (`send` gives its id), shows what becomes of it while it waits, and prints the
 * agent's answer. Ctrl-C ends the waiting, not the event. Throws as `untilFinished` and `printFinished`.
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
  // A line for each state would be noise where nothing turns: the id has been said by then.
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
      terminal.say(`it goes on without you; what becomes of it: doorward events show ${id}`)
    throw error
  } finally {
    waiting?.stop()
    letGo()
  }
}

/** `running claude`, `delivering to slack:#reviews`. */
const describeProgress = ({ state, agent, targets }: EventRecord): string => {
  if (state === 'running') return toPlainLine(`running ${agent ?? ''}`)
  if (state !== 'delivering') return state === 'accepted' ? 'queued' : state
  const waiting = targets.filter((target) => target.state === 'waiting')
  return toPlainLine(`delivering to ${waiting.map(({ target }) => target).join(', ')}`)
}

/** Says on standard error each time that a target of an event is to be tried again, and why. */
export const printRetries = (terminal: Pick<Terminal, 'say'>): ((record: EventRecord) => void) => {
  const said = new Set<string>()
  return ({ targets }) => {
    for (const { target, state, attempts, detail } of targets) {
      if (state !== 'waiting' || detail === undefined) continue
      const line = `try ${attempts}: ${detail.startsWith(target) ? '' : `${target}: `}${detail}`
      if (said.has(line)) continue
      said.add(line)
      terminal.say(toPlainLine(line))
    }
  }
}

/**
 * Prints the answer of an event that was waited for; for one that woke no agent, why on standard error.
 * Throws why it failed, or was dropped.
 */
const printFinished = (event: EventDetail, terminal: Terminal): void => {
  if (terminal.json) {
    terminal.printJson(event)
    if (event.state === 'failed' || event.state === 'dropped') process.exitCode = exitFailed
    return
  }
  // What the agent said is the answer even when a delivery failed afterwards.
  if (event.result !== undefined) terminal.print(toPlainText(event.result).replace(/\n$/, ''))
  if (event.result?.trim() === '') terminal.say(emptyAnswer)
  if ((event.state === 'filtered' || event.state === 'duplicate') && event.detail !== undefined)
    terminal.say(toPlainLine(event.detail))
  if (event.state === 'failed' || event.state === 'dropped')
    throw new DoorwardError(
      (event.code ?? 'internal') as ErrorCode,
      `${event.id} ${event.state}${event.stage ? ` at ${event.stage}` : ''}${event.detail ? `: ${event.detail}` : ''}`,
      { hint: `doorward events show ${event.id}` },
    )
}
