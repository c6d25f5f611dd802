import { stat } from 'node:fs/promises'
import { basename, relative, sep } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { systemCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'

export type ConfigWatch = { readonly close: () => Promise<void> }

/** An editor writes a file in several steps, and a person saves several files at once. */
const debounceMs = 100
/** A folder that could not be watched is tried again after so long. */
const againMs = 30_000
/** A file that is written all the time is looked at all the same. */
const longestWaitMs = 1000

/**
 * Watches the configuration files and `.env` of a home, by their folders: editors and deployments put
 * new files and whole folders in the place of old ones. Calls `changed` a tenth of a second after
 * the last change, once at the beginning too; `failed` with the system's code when it cannot watch, and
 * with undefined once it can again, which it tries from time to time.
 */
export const watchConfig = (
  home: Home,
  changed: () => void,
  failed: (code: string | undefined) => void,
): ConfigWatch => {
  let closed = false
  let watched: Promise<unknown> | undefined
  let watcher = open()
  let timer: NodeJS.Timeout | undefined
  let again: NodeJS.Timeout | undefined
  let firstAt: number | undefined

  function open(): FSWatcher {
    const opened = watch(home.root, {
      ignored: (path) => !isConfig(home, path),
      depth: 1,
      ignoreInitial: true,
    })
    opened.on('all', soon)
    // Of all that happens in the watched folders: one that was replaced makes no other event.
    opened.on('raw', soon)
    let hasFailed = false
    opened.on('error', (error) => {
      hasFailed = true
      failed(systemCode(error) ?? 'unknown reason')
      if (!closed) again ??= setTimeout(() => void openAgain(), againMs).unref()
    })
    opened.on('ready', () => {
      if (!hasFailed) failed(undefined)
      watched = readInode(home.config)
      // What changed while it was not watched yet.
      soon()
    })
    return opened
  }
  function soon(): void {
    if (closed) return
    firstAt ??= performance.now()
    const waitMs = Math.max(0, Math.min(debounceMs, firstAt + longestWaitMs - performance.now()))
    clearTimeout(timer)
    timer = setTimeout(() => {
      firstAt = undefined
      changed()
      void followFolder()
    }, waitMs)
  }
  const openAgain = async () => {
    again = undefined
    const old = watcher
    watcher = open()
    await old.close()
  }
  /** The system watches a folder, not its name: the one that has that name now is another. */
  const followFolder = async () => {
    const inode = await readInode(home.config)
    if (closed || watched === undefined || inode === (await watched)) return
    watched = Promise.resolve(inode)
    const old = watcher
    watcher = open()
    await old.close()
  }

  return {
    close: async () => {
      closed = true
      clearTimeout(timer)
      clearTimeout(again)
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
