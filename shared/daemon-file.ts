import { readFileSync } from 'node:fs'
import type { DaemonFile } from './api.ts'
import { DoorwardError, systemCode } from './errors.ts'
import { type Home, systemReason } from './home.ts'

/** `run/daemon.json`, or undefined when there is none or it cannot be read as one. */
export const readDaemonFile = async (home: Home): Promise<DaemonFile | undefined> => {
  try {
    const value: unknown = JSON.parse(readFileSync(home.daemonJson, 'utf8'))
    return isDaemonFile(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError || systemCode(error) === 'ENOENT') return undefined
    throw new DoorwardError(
      'home-unusable',
      `cannot read ${home.daemonJson}: ${systemReason(error)}`,
      {
        cause: error,
      },
    )
  }
}

const isDaemonFile = (value: unknown): value is DaemonFile =>
  typeof value === 'object' &&
  value !== null &&
  'pid' in value &&
  Number.isSafeInteger(value.pid) &&
  'url' in value &&
  typeof value.url === 'string' &&
  /^http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost):\d+$/.test(value.url)
