import { EventEmitter, once } from 'node:events'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { follow } from '../../../tray/daemon-follower.ts'

/** All that was heard of the daemon of a home; the newest is last. */
export type Followed = {
  /** `up` for a status, else the reason that is shown. */
  readonly heard: readonly string[]
  readonly statuses: readonly Status[]
  readonly events: readonly EventRecord[]
  /** Waits until this is so; looks after each thing that is heard. */
  readonly until: (is: () => boolean) => Promise<void>
  /** Waits until the last that was heard is this, or begins with it. */
  readonly untilHeard: (beginning: string) => Promise<string>
  readonly stop: () => Promise<void>
}

/** Follows the daemon of a home until it is stopped. */
export const startFollowing = (home: Home, silentMs?: number): Followed => {
  const news = new EventEmitter()
  const heard: string[] = []
  const statuses: Status[] = []
  const events: EventRecord[] = []
  const stopping = new AbortController()
  const hear = (what: string) => {
    heard.push(what)
    news.emit('news')
  }
  const following = follow(
    home,
    {
      onStatus: (status) => {
        statuses.push(status)
        hear('up')
      },
      onEvent: (event) => {
        events.push(event)
        news.emit('news')
      },
      onLost: ({ reason }) => hear(reason),
    },
    stopping.signal,
    silentMs,
  )
  const until = async (is: () => boolean): Promise<void> => {
    const signal = AbortSignal.timeout(15_000)
    while (!is())
      await once(news, 'news', { signal }).catch(() => {
        throw new Error(`not heard in 15 s; heard was ${heard.slice(-10).join(', ')}`)
      })
  }
  return {
    heard,
    statuses,
    events,
    until,
    untilHeard: async (beginning) => {
      await until(() => heard.at(-1)?.startsWith(beginning) ?? false)
      return heard.at(-1) ?? ''
    },
    stop: async () => {
      stopping.abort()
      await following
    },
  }
}
