import type { Writable } from 'node:stream'

/** Lines on their way to a stream, written many at a time. */
export type LineBuffer = {
  readonly write: (line: string) => void
  /** Hands on what is there now. */
  readonly flush: () => void
}

const longestWaitMs = 50
const mostCharacters = 32 * 1024

/**
 * Gathers lines for up to 50 ms, or 32 Ki characters: one write for each line is a third of what a
 * delivery costs otherwise.
 */
export const createLineBuffer = (stream: Writable): LineBuffer => {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (lines === '') return
    stream.write(lines)
    lines = ''
  }
  return {
    write: (line) => {
      lines += line
      if (lines.length >= mostCharacters) flush()
      else timer ??= setTimeout(flush, longestWaitMs)
    },
    flush,
  }
}
