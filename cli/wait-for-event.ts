import type { EventRecord } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { plainLine } from '../shared/text.ts'
import { holdInterrupt } from './interrupt.ts'
import { printFinished } from './print-finished.ts'
import { sayTries } from './say-tries.ts'
import { showWaiting } from './show-waiting.ts'
import type { Terminal } from './terminal.ts'
import { untilFinished } from './until-finished.ts'

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
  const sayTry = sayTries(terminal)
  // A line for each state would be noise where nothing turns: the id has been said by then.
  const waiting = terminal.isInteractive
    ? await showWaiting('sending', terminal, { signal, interrupt: 'stops waiting' })
    : undefined
  const changed = (record: EventRecord) => {
    sayTry(record)
    waiting?.now(progressOf(record))
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
const progressOf = ({ state, agent, targets }: EventRecord): string => {
  if (state === 'running') return plainLine(`running ${agent ?? ''}`)
  if (state !== 'delivering') return state === 'accepted' ? 'queued' : state
  const waiting = targets.filter((target) => target.state === 'waiting')
  return plainLine(`delivering to ${waiting.map(({ target }) => target).join(', ')}`)
}
