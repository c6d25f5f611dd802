import { readFileSync } from 'node:fs'

/*
 * Connections are open files, and a process may open only so many. Once none is left, libuv (1.46) turns
 * over whole cores while a connection waits, and no token file, configuration or agent can be opened any
 * more: whoever may connect could bring that about. So connections get a part of them, the rest is ours.
 */

/**
 * How many connections may be open at once, by the text of Linux' `/proc/self/limits`: three quarters of
 * what may be opened, but for 128. Undefined where the text says no number.
 */
export const connectionLimit = (limits: string): number | undefined => {
  const files = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.NaN)
  if (!Number.isFinite(files)) return undefined
  return Math.max(16, Math.min(Math.floor(files * 0.75), files - 128))
}

/** The same for this process; undefined where the system does not say, and then there is no limit. */
export const ownConnectionLimit = (): number | undefined => {
  try {
    return connectionLimit(readFileSync('/proc/self/limits', 'utf8'))
  } catch {
    return undefined
  }
}
