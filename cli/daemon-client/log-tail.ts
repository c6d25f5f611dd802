import type { FileHandle } from 'node:fs/promises'
import { toPlainLine } from '../../shared/text.ts'
import type { Style } from '../terminal/terminal.ts'

/** The last lines of a file, read backwards so that its size does not matter; `end` is their end offset. */
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
  // Leave out a line that is still being written.
  const whole = tail.lastIndexOf(0x0a) + 1
  const lines = tail.subarray(0, whole).toString('utf8').split('\n').slice(0, -1)
  return { lines: lines.slice(-count), end: size - (tail.length - whole) }
}

const levels: Readonly<Record<number, readonly [string, Style]>> = {
  10: ['trace', 'gray'],
  20: ['debug', 'gray'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
}

/** Formats a log line: time, level, message, then the other fields as `name=value`. */
export const logLine = (line: string, paint: (style: Style, text: string) => string): string => {
  const entry = parseEntry(line)
  if (!entry) return toPlainLine(line)
  const { time, level, msg, ...fields } = entry
  const [name, style] = levels[Number(level)] ?? [String(level ?? ''), 'reset']
  const rest = Object.entries(fields).map(([key, value]) =>
    paint(
      'gray',
      toPlainLine(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`),
    ),
  )
  return [
    paint('gray', toPlainLine(String(time ?? ''))),
    paint(style, toPlainLine(name).padEnd(5)),
    toPlainLine(typeof msg === 'string' ? msg : ''),
    ...rest,
  ]
    .filter((part) => part !== '')
    .join(' ')
}

const parseEntry = (line: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
