import { readFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { isAlive, isHeld } from '../../shared/home/lock.ts'

/**
 * Removes what a daemon that was killed between two steps of its start left: what it wrote and had not
 * put in its place, its part of a lock, its probe of the folder; a copy of `.env` may be among it. Throws
 * nothing. Call it while holding the home's lock. The folders of tokens and clients are not looked at: of
 * what lies there some is the only copy (see `oauth/token/leftovers.ts`).
 */
export const removeHalfWritten = async (home: Home): Promise<void> => {
  for (const folder of [home.root, home.run, join(home.config, 'schema')])
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name)
      if (await isLeftOver(path, name).catch(() => false)) await unlink(path).catch(() => undefined)
    }
}

const isLeftOver = async (path: string, name: string): Promise<boolean> => {
  // As `writeFileAtomic` names them; of these files none but the holder of the lock writes one.
  if (/^(\.env|(daemon|webhooks|agents|gateway)\.json|api\.token)\.[0-9a-f]{12}\.tmp$/.test(name))
    return true
  const [, pid] = /^\.probe-(\d+)$/.exec(name) ?? []
  if (pid !== undefined) return !isAlive(Number(pid))
  // Of others that try to get the lock just now; or tried, and have gone.
  if (!/^(daemon|tray|config)\.lock\./.test(name)) return false
  const holder = await readFile(path, 'utf8').catch(() => undefined)
  if (holder !== '') return holder !== undefined && !isHeld(holder)
  // Made and not written yet: its name says by whom. Of this process none is left, but in a container each
  // daemon may have the same number.
  const maker = Number(/\.(\d+)-[0-9a-f]{12}$/.exec(name)?.[1] ?? process.pid)
  return maker === process.pid || !isAlive(maker)
}
