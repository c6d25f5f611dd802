import { stripVTControlCharacters } from 'node:util'
import { widthOf } from '../shared/text.ts'
import type { Terminal } from './terminal.ts'

/** Lines at the end of a terminal that are drawn again and again, with lines above them that stay. */
export type LiveBlock = {
  /** Writes lines that stay, and then the block anew. */
  readonly draw: (staying: readonly string[], block: readonly string[]) => void
  /** Takes the block away, for something else to be written. */
  readonly clear: () => void
}

export const createLiveBlock = (terminal: Pick<Terminal, 'draw' | 'columns'>): LiveBlock => {
  let drawn: readonly string[] = []
  /** Lines of a window that was made narrower since are in several rows. */
  const erasing = (): string => {
    // Windows change.
    const { columns = 80 } = terminal
    const rows = drawn.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(shownWidth(line) / columns)),
      0,
    )
    drawn = []
    // ECMA-48: cursor up, then erase to the end of the screen.
    return rows === 0 ? '' : `\u001b[${rows}A\r\u001b[J`
  }
  return {
    draw: (staying, block) => {
      const text = erasing() + [...staying, ...block].map((line) => `${line}\n`).join('')
      drawn = block
      if (text !== '') terminal.draw(text)
    },
    clear: () => {
      const text = erasing()
      if (text !== '') terminal.draw(text)
    },
  }
}

const shownWidth = (line: string): number => widthOf(stripVTControlCharacters(line))
