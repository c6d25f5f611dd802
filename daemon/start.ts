import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { initHome } from '../shared/home/init-home.ts'
import { writeFileAtomic } from '../shared/home/files.ts'
import { type Home, prepareHome, readSecretFile } from '../shared/home/home.ts'
import { acquireLock, type HomeLock, newLockToken } from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import { readConfig } from './config/live-config.ts'
import { removeStaleFiles } from './config/stale-files.ts'
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
