import { randomBytes } from 'node:crypto'
import { readFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { initHome } from '../shared/home/init-home.ts'
import { writeFileAtomic } from '../shared/home/files.ts'
import { type Home, prepareHome, readSecretFile } from '../shared/home/home.ts'
import {
  acquireLock,
  type HomeLock,
  isAlive,
  isLockOwnerAlive,
  newLockToken,
} from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import { readConfig } from './config/live-config.ts'
import { createDaemon, type RunningDaemon } from './daemon.ts'
import { Predecessor } from './restart/new-process.ts'
import type { Channel, FromNew, FromOld } from './restart/protocol.ts'

/*
 * The two ways in which a daemon starts. Cold: home -> lock -> configuration -> services -> listen. After a
 * restart: beside the running daemon, which passes on lock, memory and sockets when all else is ready.
 */

export type { RunningDaemon } from './daemon.ts'

type StartOptions = {
  /** What started this process watches it. */
  readonly isForeground?: boolean
}

/** Starts a daemon. Throws what prevents that, and then leaves nothing running. */
export const startDaemon = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  { isForeground = false }: StartOptions = {},
): Promise<RunningDaemon> => {
  await prepareHome(home)
  const lock = await acquireLock(home)
  try {
    // Stale after a crash: the pid and the port may have been reused.
    await unlink(home.daemonJson).catch(() => undefined)
    await removeStaleFiles(home)
    await initHome(home)
    const started = await readConfig(home, processEnv)
    const apiToken = await readOrCreateApiToken(home)
    const daemon = createDaemon({ home, processEnv, started, apiToken, isForeground })
    try {
      await daemon.lead(lock, [])
      await daemon.bind()
      return await daemon.serve()
    } catch (error) {
      await daemon.giveUp()
      throw error
    }
  } catch (error) {
    await lock.release()
    throw error
  }
}

/**
 * Replaces the daemon that started this process for that. Throws what prevents it; the old one goes on
 * then. If the old one is killed before the end, this one starts like any other.
 */
export const takeOver = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  channel: Channel<FromNew, FromOld>,
): Promise<RunningDaemon> => {
  const predecessor = await Predecessor.meet(channel)
  try {
    return await replace(home, processEnv, predecessor)
  } catch (error) {
    await predecessor.failed(error)
    throw error
  }
}

const replace = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  predecessor: Predecessor,
): Promise<RunningDaemon> => {
  await prepareHome(home)
  await initHome(home)
  const started = await readConfig(home, processEnv)
  const apiToken = await readOrCreateApiToken(home)
  const daemon = createDaemon({ home, processEnv, started, apiToken, predecessor })
  let lock: HomeLock | undefined
  try {
    const places = daemon.places.filter((place) => predecessor.places.includes(place))
    await daemon.bind(daemon.places.filter((place) => !places.includes(place)))
    const lockToken = newLockToken()
    const unsaved = await predecessor.awaitLeadership({ version, lockToken, places })
    lock = await acquireLock(home, 'daemon', lockToken)
    await daemon.lead(lock, unsaved ?? [])
    if (unsaved) await predecessor.awaitSockets()
    // Sockets that were not passed, as the old process was killed.
    await daemon.bind()
    return await daemon.serve()
  } catch (error) {
    await daemon.giveUp()
    await lock?.release()
    throw error
  }
}

/**
 * The bearer token of local clients, created at the first start. Throws `home-insecure` when other users
 * can read it.
 */
const readOrCreateApiToken = async (home: Home): Promise<string> => {
  const known = (await readSecretFile(home.apiToken))?.trim()
  if (known !== undefined && /^[\x21-\x7e]{32,}$/.test(known)) return known
  const token = randomBytes(32).toString('base64url')
  await writeFileAtomic(home.apiToken, `${token}\n`)
  return token
}

/**
 * Removes what a daemon that was killed during its start left: temporary files (a copy of `.env` may be
 * among them), lock candidates and probe files. Never throws. The caller holds the home's lock. Leaves
 * the folders of tokens and clients alone: a file there may be the only copy (see `oauth/tokens/`).
 */
const removeStaleFiles = async (home: Home): Promise<void> => {
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
