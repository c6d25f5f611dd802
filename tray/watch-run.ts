import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Home } from '../shared/home/home.ts'

/**
 * Calls back when `run/daemon.json` or `run/api.token` has changed, until it is ended. Where there is
 * no folder, or no watch, it hears nothing: whoever waits looks at the stamp now and then as well.
 */
export const watchRun = (home: Home, onChange: () => void): (() => void) => {
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(home.run, { persistent: false }, (_, name) => {
      if (name === null || name === 'daemon.json' || name === 'api.token') onChange()
    })
    watcher.on('error', () => undefined)
  } catch {
    // Then there is none.
  }
  return () => watcher?.close()
}

/** Differs when `run/daemon.json` has been written, or has come or gone, since. */
export const stampOf = async (home: Home): Promise<string> => {
  try {
    const { ino, ctimeMs } = await stat(home.daemonJson)
    return `${ino} ${ctimeMs}`
  } catch {
    return 'none'
  }
}
