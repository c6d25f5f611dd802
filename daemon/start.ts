import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { initHome } from '../shared/config/init-home.ts'
import { writeFileAtomic } from '../shared/home/files.ts'
import { type Home, prepareHome, readSecretFile } from '../shared/home/home.ts'
import { acquireLock, type HomeLock, newLockToken } from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import { readConfig } from './config/live-config.ts'
import { removeStaleFiles } from './config/stale-files.ts'
import { createDaemon, type RunningDaemon } from './daemon.ts'
import { meetPredecessor, type Predecessor } from './restart/new-process.ts'
import type { Channel, FromNew, FromOld } from './restart/protocol.ts'

/*
 * The two ways in which a daemon's life begins: home -> lock -> configuration -> parts -> listen; or, for
 * a restart, beside a daemon that runs, which passes on lock, memory and sockets once all else is there.
 */

export type { RunningDaemon } from './daemon.ts'

type StartOptions = {
  /** Whoever started us watches this very process. */
  readonly isForeground?: boolean
}

/** Starts everything. Throws what keeps it from starting, and then leaves nothing running. */
export const startDaemon = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  { isForeground = false }: StartOptions = {},
): Promise<RunningDaemon> => {
  await prepareHome(home)
  const lock = await acquireLock(home)
  try {
    // Of a daemon that was killed: its process number and port may be another's by now.
    await unlink(home.daemonJson).catch(() => undefined)
    await removeStaleFiles(home)
    await initHome(home)
    const started = await readConfig(home, processEnv)
    const apiToken = await readOrMakeApiToken(home)
    const daemon = createDaemon({ home, processEnv, started, apiToken, isForeground })
    try {
      await daemon.takeOffice(lock, [])
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
 * Takes over from the daemon that has started this one for that. Throws what keeps it from doing so; the
 * old one goes on then. Should that be killed in the middle, this one starts as any other.
 */
export const takeOver = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  channel: Channel<FromNew, FromOld>,
): Promise<RunningDaemon> => {
  const predecessor = await meetPredecessor(channel)
  try {
    return await begin(home, processEnv, predecessor)
  } catch (error) {
    await predecessor.failed(error)
    throw error
  }
}

const begin = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
  predecessor: Predecessor,
): Promise<RunningDaemon> => {
  await prepareHome(home)
  await initHome(home)
  const started = await readConfig(home, processEnv)
  const apiToken = await readOrMakeApiToken(home)
  const daemon = createDaemon({ home, processEnv, started, apiToken, predecessor })
  let lock: HomeLock | undefined
  try {
    const places = daemon.places.filter((place) => predecessor.places.includes(place))
    await daemon.bind(daemon.places.filter((place) => !places.includes(place)))
    await daemon.prove()
    const holding = newLockToken()
    const unsaved = await predecessor.office({ version, holding, places })
    lock = await acquireLock(home, 'daemon', holding)
    await daemon.takeOffice(lock, unsaved ?? [])
    if (unsaved) await predecessor.sockets()
    // Those that were not passed, as there is nobody any more who could.
    await daemon.bind()
    return await daemon.serve()
  } catch (error) {
    await daemon.giveUp()
    await lock?.release()
    throw error
  }
}

/**
 * The bearer token of local clients, made at the first start. Throws `home-insecure` when others can
 * read it.
 */
const readOrMakeApiToken = async (home: Home): Promise<string> => {
  const known = (await readSecretFile(home.apiToken))?.trim()
  if (known !== undefined && /^[\x21-\x7e]{32,}$/.test(known)) return known
  const token = randomBytes(32).toString('base64url')
  await writeFileAtomic(home.apiToken, `${token}\n`)
  return token
}
