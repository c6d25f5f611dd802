import { StringDecoder } from 'node:string_decoder'

/** A line that is longer is cut here, and what follows up to its end is left out. */
const longestLine = 256 * 1024

/** Cuts the output of a program into lines. A byte that is no UTF-8 becomes a replacement character. */
export class LineReader {
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  #isCut = false

  /** The lines that end in this piece; empty ones are left out. */
  read(chunk: Buffer): string[] {
    const pieces = this.#decoder.write(chunk).split('\n')
    return pieces.flatMap((piece, index) => {
      if (!this.#isCut) this.#rest += piece
      if (this.#rest.length > longestLine) {
        this.#isCut = true
        this.#rest = this.#rest.slice(0, longestLine)
      }
      return index === pieces.length - 1 ? [] : this.#take()
    })
  }

  /** The last line, where the program has ended without ending it. */
  end(): string[] {
    this.#rest += this.#decoder.end()
    return this.#take()
  }

  #take(): string[] {
    const line = this.#rest.replace(/\r$/, '')
    this.#rest = ''
    this.#isCut = false
    return line.trim() === '' ? [] : [line]
  }
}

/** The payload of one line: the JSON object that it is, else `{line}`. */
export const toPayload = (line: string): object => {
  if (!line.trimStart().startsWith('{')) return { line }
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : { line }
  } catch {
    return { line }
  }
}

/** One event for the lines of a time. */
export const toBatch = (lines: readonly string[]): object => ({ lines: lines.map(parsedLine) })

const parsedLine = (line: string): unknown => {
  const payload = toPayload(line)
  return 'line' in payload && Object.keys(payload).length === 1 ? line : payload
}
