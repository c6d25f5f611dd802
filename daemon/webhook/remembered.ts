/** Which event each delivery of one webhook has become, the oldest first. */
export type Remembered = {
  /** `hash` is that of SHA-256, a byte a character (`latin1`); times are whole seconds. */
  readonly eventOf: (hash: string, nowSecond: number) => string | undefined
  /** As the newest, in place of what is remembered of this hash. Lets go of the oldest, and of what is too old. */
  readonly put: (hash: string, eventId: string, nowSecond: number) => void
  /** True when it was remembered as this event. */
  readonly remove: (hash: string, eventId: string) => boolean
  readonly entries: () => readonly {
    readonly hash: string
    readonly eventId: string
    readonly atSecond: number
  }[]
}

const hashBytes = 32
const hashWords = hashBytes / 4
/** After the hash: the second, then the length of the event's id and the id. */
const secondWord = hashWords
const idLengthByte = hashBytes + 4
const idByte = idLengthByte + 1
const rowBytes = 64
const rowWords = rowBytes / 4
const longestId = rowBytes - idByte

const firstRows = 16
const none = -1

/**
 * Makes an empty one that holds the newest `max`, for `seconds` at most. It is the one thing that grows with
 * all that comes: as objects of V8, ten thousand deliveries are forty thousand objects, 4.3 MB, that the
 * collector has moved twice each and looks at again and again. So they are rows of 64 bytes in one piece of
 * memory outside of its heap, with a table of hashes (open addressing, linear probing) to find them.
 */
export const createRemembered = (max: number, seconds: number): Remembered => {
  let rows = roomFor(firstRows)
  let size = 0
  let used = 0
  let [oldest, newest, free] = [none, none, none]
  /** What is looked for, as the bytes of a row. */
  const wanted = roomFor(1)

  /** Where a hash stands in the table; or the empty place where it would. */
  const placeOf = (words: Int32Array, start: number): number => {
    const mask = rows.table.length - 1
    let place = (words[start] ?? 0) & mask
    for (;;) {
      const row = (rows.table[place] ?? 0) - 1
      if (row === none || isSame(words, start, row)) return place
      place = (place + 1) & mask
    }
  }
  const isSame = (words: Int32Array, start: number, row: number): boolean => {
    const other = row * rowWords
    for (let word = 0; word < hashWords; word += 1)
      if (words[start + word] !== rows.words[other + word]) return false
    return true
  }
  const find = (hash: string): number => {
    writeText(wanted.bytes, 0, hash)
    return (rows.table[placeOf(wanted.words, 0)] ?? 0) - 1
  }
  const secondOf = (row: number): number => rows.words[row * rowWords + secondWord] ?? 0
  const idOf = (row: number): string => {
    const start = row * rowBytes
    const length = rows.bytes[start + idLengthByte] ?? 0
    return rows.bytes.toString('latin1', start + idByte, start + idByte + length)
  }

  const link = (row: number): void => {
    rows.before[row] = newest
    rows.after[row] = none
    if (newest === none) oldest = row
    else rows.after[newest] = row
    newest = row
  }
  const drop = (row: number): void => {
    const before = rows.before[row] ?? none
    const after = rows.after[row] ?? none
    if (before === none) oldest = after
    else rows.after[before] = after
    if (after === none) newest = before
    else rows.before[after] = before
    takeOut(placeOf(rows.words, row * rowWords))
    rows.after[row] = free
    free = row
    size -= 1
  }
  /** What was pushed on by it, or by what is behind it, moves up: no search may end at the gap. */
  const takeOut = (taken: number): void => {
    const mask = rows.table.length - 1
    let gap = taken
    for (let place = (gap + 1) & mask; rows.table[place] !== 0; place = (place + 1) & mask) {
      const row = (rows.table[place] ?? 0) - 1
      const home = (rows.words[row * rowWords] ?? 0) & mask
      if (((place - home) & mask) < ((place - gap) & mask)) continue
      rows.table[gap] = row + 1
      gap = place
    }
    rows.table[gap] = 0
  }
  /** There is one too many, or one too old that is not the one just put. */
  const isOver = (row: number, nowSecond: number): boolean =>
    size > max || (oldest !== row && nowSecond - secondOf(oldest) >= seconds)
  const freeRow = (): number => {
    if (free !== none) {
      const row = free
      free = rows.after[row] ?? none
      return row
    }
    if (used === rows.before.length) grow()
    used += 1
    return used - 1
  }
  const grow = (): void => {
    const old = rows
    rows = roomFor(old.before.length * 2)
    rows.bytes.set(old.bytes)
    rows.before.set(old.before)
    rows.after.set(old.after)
    // None is free, or it would not have to grow.
    for (let row = 0; row < used; row += 1)
      rows.table[placeOf(rows.words, row * rowWords)] = row + 1
  }

  return {
    eventOf: (hash, nowSecond) => {
      const row = find(hash)
      return row === none || nowSecond - secondOf(row) >= seconds ? undefined : idOf(row)
    },
    put: (hash, eventId, nowSecond) => {
      // From a daemon that is no build of this day, after a restart: nothing that comes has such a hash.
      if (hash.length !== hashBytes) return
      if (eventId.length > longestId) throw new RangeError('the id of an event is too long')
      const known = find(hash)
      if (known !== none) drop(known)
      const row = freeRow()
      const start = row * rowBytes
      writeText(rows.bytes, start, hash)
      rows.words[row * rowWords + secondWord] = nowSecond
      rows.bytes[start + idLengthByte] = eventId.length
      writeText(rows.bytes, start + idByte, eventId)
      rows.table[placeOf(rows.words, row * rowWords)] = row + 1
      link(row)
      size += 1
      while (isOver(row, nowSecond)) drop(oldest)
    },
    remove: (hash, eventId) => {
      const row = find(hash)
      if (row === none || idOf(row) !== eventId) return false
      drop(row)
      return true
    },
    entries: () => {
      const found = []
      for (let row = oldest; row !== none; row = rows.after[row] ?? none) {
        const start = row * rowBytes
        const hash = rows.bytes.toString('latin1', start, start + hashBytes)
        found.push({ hash, eventId: idOf(row), atSecond: secondOf(row) })
      }
      return found
    },
  }
}

/** As `latin1`; a call of Node's own costs more than a text so short. */
const writeText = (bytes: Uint8Array, start: number, text: string): void => {
  for (let at = 0; at < text.length; at += 1) bytes[start + at] = text.charCodeAt(at)
}

type Room = {
  readonly bytes: Buffer
  /** The same memory. */
  readonly words: Int32Array
  /** The rows that came before and after each; of a free one, the next that is free. */
  readonly before: Int32Array
  readonly after: Int32Array
  /** By hash: the number of a row and one; 0 where none is. At most half of it is taken. */
  readonly table: Int32Array
}

/** `count` is a power of two. */
const roomFor = (count: number): Room => {
  const memory = new ArrayBuffer(count * rowBytes)
  return {
    bytes: Buffer.from(memory),
    words: new Int32Array(memory),
    before: new Int32Array(count),
    after: new Int32Array(count),
    table: new Int32Array(count * 2),
  }
}
