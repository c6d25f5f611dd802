import { readFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { isAlive, isLockOwnerAlive } from '../../shared/home/lock.ts'

/**
 * Removes what a daemon that was killed during its start left: temporary files (a copy of `.env` may be
 * among them), lock candidates and probe files. Never throws. The caller holds the home's lock. Leaves
 * the folders of tokens and clients alone: a file there may be the only copy (see `oauth/tokens/`).
 */
export const removeStaleFiles = async (home: Home): Promise<void> => {
  for (const folder of [home.root, home.run, join(home.config, 'schema')])
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name)
      if (await isStale(path, name).catch(() => false)) await unlink(path).catch(() => undefined)
    }
}

const isStale = async (path: string, name: string): Promise<boolean> => {
  // Named by `writeFileAtomic`; only the owner of the lock writes these files.
  if (
    /^(\.env|(daemon|webhooks|agents|gateway)\.json|api\.token|machine)\.[0-9a-f]{12}\.tmp$/.test(
      name,
    )
  )
    return true
  const [, pid] = /^\.probe-(\d+)$/.exec(name) ?? []
  if (pid !== undefined) return !isAlive(Number(pid))
  // Another process may be trying to get the lock right now.
  if (!/^(daemon|tray|config)\.lock\./.test(name)) return false
  const owner = await readFile(path, 'utf8').catch(() => undefined)
  if (owner !== '') return owner !== undefined && !isLockOwnerAlive(owner)
  // Created but not written: only its name says whose it is. Our own pid means stale too: in a container
  // each daemon may get the same pid.
  const creator = Number(/\.(\d+)-[0-9a-f]{12}$/.exec(name)?.[1] ?? process.pid)
  return creator === process.pid || !isAlive(creator)
}
