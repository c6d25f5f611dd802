/** Lines on their way to a stream, written many at a time. */
export type LineBuffer = {
  readonly write: (line: string) => void
  /** Hands on what is there now. */
  readonly flush: () => void
}

/** Where the lines go. */
type Destination = { readonly write: (lines: string) => void }

const gatherMs = 50
const mostCharacters = 32 * 1024

/**
 * Hands on a line at once after a quiet moment, and what follows within 50 ms together, or as soon as it is
 * 32 Ki characters: one write for each line is a third of what a delivery costs otherwise.
 */
export const createLineBuffer = (stream: Destination): LineBuffer => {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const handOn = (): void => {
    stream.write(lines)
    lines = ''
  }
  const gather = (): void => {
    timer = setTimeout(() => {
      timer = undefined
      if (lines === '') return
      handOn()
      gather()
    }, gatherMs)
  }
  return {
    write: (line) => {
      lines += line
      if (timer && lines.length < mostCharacters) return
      handOn()
      if (!timer) gather()
    },
    flush: () => {
      if (lines !== '') handOn()
    },
  }
}
