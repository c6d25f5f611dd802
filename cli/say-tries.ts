import type { EventRecord } from '../shared/api.ts'
import { plainLine } from '../shared/text.ts'
import type { Terminal } from './terminal.ts'

/** Says on standard error each time that a target of an event is to be tried again, and why. */
export const sayTries = (terminal: Pick<Terminal, 'say'>): ((record: EventRecord) => void) => {
  const said = new Set<string>()
  return ({ targets }) => {
    for (const { target, state, attempts, detail } of targets) {
      if (state !== 'waiting' || detail === undefined) continue
      const line = `try ${attempts}: ${detail.startsWith(target) ? '' : `${target}: `}${detail}`
      if (said.has(line)) continue
      said.add(line)
      terminal.say(plainLine(line))
    }
  }
}
