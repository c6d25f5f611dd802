import type { EventDetail } from '../shared/api.ts'
import { DoorwardError, type ErrorCode } from '../shared/errors.ts'
import { plainLine, plainLines } from '../shared/text.ts'
import { emptyAnswer } from './event-line.ts'
import { exitFailed } from './exit-code.ts'
import type { Terminal } from './terminal.ts'

/**
 * Prints the answer of an event that was waited for; for one that woke no agent, why on standard error.
 * Throws why it failed, or was dropped.
 */
export const printFinished = (event: EventDetail, terminal: Terminal): void => {
  if (terminal.json) {
    terminal.printJson(event)
    if (event.state === 'failed' || event.state === 'dropped') process.exitCode = exitFailed
    return
  }
  // What the agent said is the answer even when a delivery failed afterwards.
  if (event.result !== undefined) terminal.print(plainLines(event.result).replace(/\n$/, ''))
  if (event.result?.trim() === '') terminal.say(emptyAnswer)
  if ((event.state === 'filtered' || event.state === 'duplicate') && event.detail !== undefined)
    terminal.say(plainLine(event.detail))
  if (event.state === 'failed' || event.state === 'dropped')
    throw new DoorwardError(
      (event.code ?? 'internal') as ErrorCode,
      `${event.id} ${event.state}${event.stage ? ` at ${event.stage}` : ''}${event.detail ? `: ${event.detail}` : ''}`,
      { hint: `doorward events show ${event.id}` },
    )
}
