import { plainLine } from '../shared/text.ts'
import type { Style } from './terminal.ts'

const levels: Readonly<Record<number, readonly [string, Style]>> = {
  10: ['trace', 'gray'],
  20: ['debug', 'gray'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
}

/** One line of the log for a person: time, level, message, then the other fields as `name=value`. */
export const logLine = (line: string, paint: (style: Style, text: string) => string): string => {
  const entry = entryOf(line)
  if (!entry) return plainLine(line)
  const { time, level, msg, ...fields } = entry
  const [name, style] = levels[Number(level)] ?? [String(level ?? ''), 'reset']
  const rest = Object.entries(fields).map(([key, value]) =>
    paint('gray', plainLine(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  )
  return [
    paint('gray', plainLine(String(time ?? ''))),
    paint(style, plainLine(name).padEnd(5)),
    plainLine(typeof msg === 'string' ? msg : ''),
    ...rest,
  ]
    .filter((part) => part !== '')
    .join(' ')
}

const entryOf = (line: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
