import { stat } from 'node:fs/promises'
import { basename, relative, sep } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { systemCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'

export type ConfigWatch = { readonly close: () => Promise<void> }

/** An editor writes a file in several steps, and a person saves several files together. */
const debounceMs = 100
/** The limit for a file that is written all the time. */
const maxDelayMs = 1000
const retryMs = 30_000

/**
 * Watches the configuration files and `.env` of a home. Watches their folders, as editors and deployments
 * replace files and whole folders. Calls `changed` 100 ms after the last change, and once at the start.
 * Calls `failed` with the system's error code when it cannot watch, and with undefined once it can again.
 */
export const watchConfig = (
  home: Home,
  changed: () => void,
  failed: (code: string | undefined) => void,
): ConfigWatch => {
  let closed = false
  let watchedFolder: Promise<string> | undefined
  let watcher = open()
  let debounceTimer: NodeJS.Timeout | undefined
  let retryTimer: NodeJS.Timeout | undefined
  let firstChangeAt: number | undefined

  function open(): FSWatcher {
    const opened = watch(home.root, {
      ignored: (path) => !isConfig(home, path),
      depth: 1,
      ignoreInitial: true,
    })
    opened.on('all', schedule)
    // A replaced folder causes only raw events.
    opened.on('raw', schedule)
    let hasFailed = false
    opened.on('error', (error) => {
      hasFailed = true
      failed(systemCode(error) ?? 'unknown reason')
      if (!closed) retryTimer ??= setTimeout(() => void reopen(), retryMs).unref()
    })
    opened.on('ready', () => {
      if (!hasFailed) failed(undefined)
      watchedFolder = readInode(home.config)
      // For changes before the watch began.
      schedule()
    })
    return opened
  }
  function schedule(): void {
    if (closed) return
    firstChangeAt ??= performance.now()
    const leftMs = firstChangeAt + maxDelayMs - performance.now()
    clearTimeout(debounceTimer)
    debounceTimer = setTimeout(
      () => {
        firstChangeAt = undefined
        changed()
        void followFolder()
      },
      Math.max(0, Math.min(debounceMs, leftMs)),
    )
  }
  const reopen = async () => {
    clearTimeout(retryTimer)
    retryTimer = undefined
    const old = watcher
    watcher = open()
    await old.close()
  }
  /** The system watches an inode: another folder may have the name now. */
  const followFolder = async () => {
    const inode = await readInode(home.config)
    if (closed || watchedFolder === undefined || inode === (await watchedFolder)) return
    watchedFolder = Promise.resolve(inode)
    await reopen()
  }

  return {
    close: async () => {
      closed = true
      clearTimeout(debounceTimer)
      clearTimeout(retryTimer)
      await watcher.close()
    },
  }
}

const isConfig = (home: Home, path: string): boolean => {
  const [first = '', second, ...more] = relative(home.root, path).split(sep)
  if (first === '') return true
  if (first === basename(home.env)) return second === undefined
  if (first !== basename(home.config) || more.length > 0) return false
  return second === undefined || /^(webhooks|agents|gateway)\.yaml$/.test(second)
}

const readInode = async (path: string): Promise<string> => {
  try {
    const { dev, ino } = await stat(path)
    return `${dev}:${ino}`
  } catch {
    return 'none'
  }
}
