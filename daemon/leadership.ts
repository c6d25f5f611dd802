import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { type HomeLock, acquireLock } from '../shared/home/lock.ts'
import { endLeftovers } from './agents/orphans.ts'
import type { EventStore } from './events/event-store.ts'
import type { Log } from './log/log.ts'
import type { OAuthDependencies } from './oauth/dependencies.ts'
import { type OAuth, type OAuthEvent, createOAuth } from './oauth/oauth.ts'
import type { TokenRecord } from './oauth/tokens/token-record.ts'
import type { Engine } from './webhook/engine.ts'
import { viewOf } from './view-of.ts'

/**
 * What only one daemon of a home does: it holds the lock, and renews tokens. A daemon that is not in
 * office yet, or no more, gives out no token of its own.
 */
export type Leadership = {
  /** Logins and tokens, until the office changes hands the next time. */
  readonly oauth: () => OAuth
  /** The same two of whichever they are by then, for parts that outlive a change. */
  readonly access: OAuth['access']
  /** From now on it is this daemon's; `unsaved` are the tokens that the disk refused. */
  readonly take: (held: HomeLock, unsaved: readonly TokenRecord[]) => Promise<void>
  /** Renews nothing from now on, for a successor; returns what the disk refused. */
  readonly putDown: () => Promise<readonly TokenRecord[]>
  /** Names the next one who holds it. Throws what the disk refuses. */
  readonly passTo: (holding: string) => Promise<void>
  /** After a successor that failed: goes on with what was put down. */
  readonly takeBack: (unsaved: readonly TokenRecord[]) => Promise<void>
  /** Whether it is this daemon's now; false also while the disk does not tell. */
  readonly isHeld: () => Promise<boolean>
  /** Refuses new logins, for a stop that waits for agents first. */
  readonly takeNoLogins: () => void
  /** Ends logins and refreshes; the lock is still held. */
  readonly close: () => Promise<void>
  readonly letGo: () => Promise<void>
}

export type LeadershipServices = {
  readonly home: Home
  readonly current: () => Pick<Engine, 'config' | 'env'>
  readonly events: EventStore
  readonly log: Log
  readonly count: NonNullable<OAuthDependencies['count']>
  /** Who gives out tokens while this daemon does not. */
  readonly elsewhere: NonNullable<OAuthDependencies['elsewhere']>
}

/** A refresh on its way when a restart is asked for may take as long as its request may. */
const restarting = { reason: 'the daemon was restarted', refreshLimitMs: 31_000 }

/** Not taken yet. */
export const createLeadership = ({
  home,
  current,
  events,
  log,
  count,
  elsewhere,
}: LeadershipServices): Leadership => {
  const makeOAuth = (unsaved: readonly TokenRecord[]) =>
    createOAuth(
      {
        home,
        gateway: viewOf(() => current().config.gateway),
        env: viewOf(() => current().env),
        log,
        announce: announceTo(events),
        count,
        elsewhere,
      },
      unsaved,
    )
  let oauth = makeOAuth([])
  let lock: HomeLock | undefined

  return {
    oauth: () => oauth,
    access: async (...asked) => oauth.access(...asked),
    take: async (held, unsaved) => {
      lock = held
      await endLeftovers(home, log)
      if (unsaved.length > 0) oauth = makeOAuth(unsaved)
      // Before anybody can ask: a token that a killed daemon may have used up is not handed out unseen.
      await oauth.start()
    },
    putDown: async () => {
      await oauth.close(restarting)
      return oauth.unsaved()
    },
    passTo: async (holding) => {
      if (!lock) throw new Error('the home is not locked')
      await lock.transferTo(holding)
    },
    takeBack: async (unsaved) => {
      if (!(await lock?.isOurs())) lock = await holdAgain(home, log)
      oauth = makeOAuth(unsaved)
      await oauth.start()
    },
    isHeld: async () => (await lock?.isOurs().catch(() => false)) ?? false,
    takeNoLogins: () => oauth.refuseLogins(),
    close: async () => oauth.close(),
    letGo: async () => lock?.release(),
  }
}

/** Of a successor that failed. Another start may just be trying too: it finds our port taken. */
const holdAgain = async (home: Home, log: Log): Promise<HomeLock | undefined> => {
  for (let tries = 0; tries < 50; tries += 1) {
    try {
      return await acquireLock(home)
    } catch (error) {
      if (!(error instanceof DoorwardError) || error.code !== 'already-running') throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  log.error('another daemon has locked this home: this one goes on without')
  return undefined
}

const announceTo =
  (events: EventStore) =>
  ({ provider, what, state, code, detail }: OAuthEvent): void => {
    events.add(new Date(), {
      kind: 'oauth',
      state,
      detail: `${provider}: ${detail ?? what}`,
      ...(code === undefined ? {} : { code }),
    })
  }
