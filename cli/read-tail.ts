import type { FileHandle } from 'node:fs/promises'

/** The last lines of a file, read backwards so that a large one costs nothing; `end` is where they end. */
export const readTail = async (
  file: FileHandle,
  count: number,
): Promise<{ lines: string[]; end: number }> => {
  const { size } = await file.stat()
  let start = size
  let tail = Buffer.alloc(0)
  while (start > 0 && tail.filter((byte) => byte === 0x0a).length <= count) {
    const from = Math.max(0, start - 65_536)
    const chunk = Buffer.alloc(start - from)
    await file.read(chunk, 0, chunk.length, from)
    tail = Buffer.concat([chunk, tail])
    start = from
  }
  // A line that is still being written belongs to what follows.
  const whole = tail.lastIndexOf(0x0a) + 1
  const lines = tail.subarray(0, whole).toString('utf8').split('\n').slice(0, -1)
  return { lines: lines.slice(-count), end: size - (tail.length - whole) }
}
