import { readFile } from 'node:fs/promises'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import { parseJson, valueAt } from '../../util/payload-path.ts'

/** The public part of a token, which names the bot. */
export const toBotId = (token: string): string => /^(\d{1,20}):/.exec(token)?.[1] ?? 'unknown'

/**
 * For each bot the number of the first update that was not taken. Telegram forgets the updates below it with the next
 * request; the file is for a daemon that ends between the two.
 */
export class Offsets {
  readonly #file: string
  #numbers: Promise<Map<string, number>> | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(file: string) {
    this.#file = file
  }

  /** Undefined for a bot that was never read, and where the file is missing or damaged: the updates have ids. */
  async get(bot: string): Promise<number | undefined> {
    return (await this.#read()).get(bot)
  }

  /** Throws the error of Node. */
  async set(bot: string, offset: number): Promise<void> {
    const numbers = await this.#read()
    if (numbers.get(bot) === offset) return
    numbers.set(bot, offset)
    this.#writing = this.#writing
      .catch(() => undefined)
      .then(() => writeFileAtomic(this.#file, `${JSON.stringify(Object.fromEntries(numbers))}\n`))
    return this.#writing
  }

  async #read(): Promise<Map<string, number>> {
    this.#numbers ??= readFile(this.#file, 'utf8').then(parseOffsets, () => new Map())
    return this.#numbers
  }
}

const parseOffsets = (text: string): Map<string, number> => {
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null) return new Map()
  return new Map(
    Object.keys(value).flatMap((bot) => {
      const offset = valueAt(value, [bot])
      return typeof offset === 'number' && Number.isSafeInteger(offset) ? [[bot, offset]] : []
    }),
  )
}
