import { nameOf } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { createDaemonJson } from './daemon-json.ts'
import type { Listeners } from './http/listeners.ts'
import type { Log } from './log/log.ts'
import type { Setup } from './setup.ts'

/** Where a daemon is found, and what tells clients of it. */
export type Whereabouts = {
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

export type WhereaboutsParts = {
  readonly home: Home
  readonly startedAt: Date
  readonly listeners: Pick<Listeners, 'url' | 'publicUrl'>
  /** A tunnel's address is as configured by then. */
  readonly current: () => Pick<Setup, 'config'>
  readonly log: Log
}

export const createWhereabouts = ({
  home,
  startedAt,
  listeners,
  current,
  log,
}: WhereaboutsParts): Whereabouts => {
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
        log.error({ error: nameOf(error) }, 'cannot write daemon.json'),
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
        if (isTold) log.error({ error: nameOf(error) }, 'cannot write daemon.json')
        isTold = false
      }
    },
    remove: async () => file.remove(),
  }
}
