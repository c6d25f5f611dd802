import { access, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { errorName, systemCode } from '../shared/errors.ts'
import { writeFileAtomic } from '../shared/home/files.ts'
import type { Home } from '../shared/home/home.ts'
import { version } from '../shared/version.ts'
import type { Listeners } from './http/server.ts'
import type { Leadership } from './leadership.ts'
import type { Log } from './log/log.ts'
import type { Engine } from './webhook/engine.ts'

/** Where a daemon is found, and what tells clients of it. */
export type DaemonFileWriter = {
  readonly url: () => string
  /** Where senders reach the webhooks, when that is not `url`. */
  readonly publicUrl: () => string | undefined
  /** Tells where that is now. Throws what the disk refuses. */
  readonly tell: () => Promise<void>
  /** The same, of a daemon that serves whether that can be told or not. */
  readonly tellIfPossible: () => Promise<void>
  /** The same, after another daemon may have told of itself. */
  readonly tellAgain: () => Promise<void>
  /** The same, where somebody else has removed what was told. */
  readonly tellIfGone: () => Promise<void>
  readonly remove: () => Promise<void>
}

type WhereaboutsParts = {
  readonly home: Home
  readonly startedAt: Date
  readonly listeners: Pick<Listeners, 'url' | 'publicUrl'>
  /** A tunnel's address is as configured by then. */
  readonly current: () => Pick<Engine, 'config'>
  readonly log: Log
}

export const createDaemonFileWriter = ({
  home,
  startedAt,
  listeners,
  current,
  log,
}: WhereaboutsParts): DaemonFileWriter => {
  const { url } = listeners
  const publicUrl = () => current().config.gateway.server.public_url ?? listeners.publicUrl()
  let file = createDaemonJson(home, startedAt)
  let isTold = true
  const tell = async () => file.write(url(), publicUrl())
  return {
    url,
    publicUrl,
    tell,
    tellIfPossible: async () =>
      tell().catch((error: unknown) =>
        log.error({ error: errorName(error) }, 'cannot write daemon.json'),
      ),
    tellAgain: async () => {
      file = createDaemonJson(home, startedAt)
      await tell()
    },
    tellIfGone: async () => {
      try {
        if (await file.writeAgain()) log.warn('daemon.json was gone: written again')
        isTold = true
      } catch (error) {
        // It is tried again for as long as it takes.
        if (isTold) log.error({ error: errorName(error) }, 'cannot write daemon.json')
        isTold = false
      }
    },
    remove: async () => file.remove(),
  }
}

/** `run/daemon.json`: where clients find the daemon while it runs. */
type DaemonJson = {
  /** Writes it whole, if it would say something else than before. */
  readonly write: (url: string, publicUrl: string | undefined) => Promise<void>
  /** Writes it again where somebody else has removed it; true then. Throws what the disk refuses. */
  readonly writeAgain: () => Promise<boolean>
  readonly remove: () => Promise<void>
}

const createDaemonJson = ({ daemonJson: path }: Home, startedAt: Date): DaemonJson => {
  let written: string | undefined
  return {
    write: async (url, publicUrl) => {
      const file = {
        pid: process.pid,
        url,
        ...(publicUrl === undefined ? {} : { publicUrl }),
        version,
        startedAt: startedAt.toISOString(),
      }
      const text = `${JSON.stringify(file)}\n`
      if (text !== written) await writeFileAtomic(path, text)
      written = text
    },
    writeAgain: async () => {
      const isMissing = await isGone(path)
      // Looked at last: it may just have been removed here.
      if (!isMissing || written === undefined) return false
      await writeFileAtomic(path, written)
      return true
    },
    remove: async () => {
      written = undefined
      await unlink(path).catch(() => undefined)
    },
  }
}

const isGone = async (path: string): Promise<boolean> =>
  access(path).then(
    () => false,
    (error: unknown) => systemCode(error) === 'ENOENT',
  )

const lookMs = 5000

/**
 * Looks every five seconds whether `run/daemon.json` is there, and writes it again while this daemon is in
 * office: without it no command finds a daemon that keeps all others from starting. Keeps no process alive.
 */
export const watchDaemonFile = (
  whereabouts: Pick<DaemonFileWriter, 'tellIfGone'>,
  office: Pick<Leadership, 'isHeld'>,
): void => {
  const look = async (): Promise<void> => {
    if (await office.isHeld()) await whereabouts.tellIfGone()
  }
  setInterval(() => void look(), lookMs).unref()
}

const homeCheckMs = 30_000

/**
 * Looks every half minute whether the home still has our lock, and calls `gone` when it has not twice in a
 * row: somebody has removed the home. A daemon without one can keep nothing, holds the port of the one to
 * come, and no command finds it any more. Keeps no process alive.
 */
export const watchHomeRemoved = ({ run }: Home, gone: () => void): void => {
  let wasMissing = false
  const look = async (): Promise<void> => {
    const isMissing = await stat(join(run, 'daemon.lock')).then(
      () => false,
      // A disk that does not answer is another matter.
      (error: unknown) => ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? ''),
    )
    if (isMissing && wasMissing) {
      clearInterval(timer)
      gone()
    }
    wasMissing = isMissing
  }
  const timer = setInterval(() => void look(), homeCheckMs).unref()
}
