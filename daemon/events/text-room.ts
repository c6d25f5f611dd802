/** A text that is kept in a room. */
export type KeptText = {
  /** In UTF-16 units, as of a string. */
  readonly length: number
  readonly slab: Slab
  readonly start: number
  readonly encoding: 'latin1' | 'utf16le'
}

type Slab = { readonly bytes: Buffer; used: number; texts: number }

/** Keeps texts that are seldom read outside of V8's heap. */
export type TextRoom = {
  readonly put: (text: string) => KeptText
  /** The same text, unit for unit. */
  readonly read: (text: KeptText) => string
  /** Nothing of it is left in the room from now on; once for each text. */
  readonly free: (text: KeptText) => void
}

export const slabBytes = 256 * 1024

/**
 * Makes an empty room. What lives as long as the last few hundred events does is copied twice by V8's
 * collector before it comes to rest among the old objects, where it is garbage soon after: for a prompt and
 * an answer of 3 KB a tenth of all that a delivery costs. Here a text is copied once, into a slab that it
 * shares with those put before and after it; a slab is used again once all of its texts are free, so that
 * they should be freed in about the order they were put.
 */
export const createTextRoom = (): TextRoom => {
  const newSlab = (size = slabBytes): Slab => ({
    bytes: Buffer.allocUnsafeSlow(size),
    used: 0,
    texts: 0,
  })
  let current: Slab | undefined
  let spare: Slab | undefined

  const slabFor = (size: number): Slab => {
    // A long one has a slab of its own, which goes with it.
    if (size > slabBytes / 4) return newSlab(size)
    if (current && current.used + size <= slabBytes) return current
    current = spare ?? newSlab()
    spare = undefined
    return current
  }

  return {
    put: (text) => {
      const { length } = text
      // The common case first: of what is no ASCII each unit takes two bytes of UTF-8 or more.
      const isLatin1 = Buffer.byteLength(text) === length || !/[^\0-\xff]/.test(text)
      const encoding = isLatin1 ? 'latin1' : 'utf16le'
      const slab = slabFor(getSize(length, encoding))
      const start = slab.used
      slab.used += slab.bytes.write(text, start, encoding)
      slab.texts += 1
      return { length, slab, start, encoding }
    },
    read: ({ slab, start, length, encoding }) =>
      slab.bytes.toString(encoding, start, start + getSize(length, encoding)),
    free: ({ slab, start, length, encoding }) => {
      slab.bytes.fill(0, start, start + getSize(length, encoding))
      slab.texts -= 1
      if (slab.texts > 0) return
      slab.used = 0
      if (slab !== current && slab.bytes.length === slabBytes) spare = slab
    },
  }
}

const getSize = (length: number, encoding: KeptText['encoding']): number =>
  encoding === 'latin1' ? length : length * 2
