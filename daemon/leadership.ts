import type { HeldSecret } from './delivery/secrets/held.ts'
import type { Gateway } from '../shared/config/schema.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { type HomeLock, acquireLock } from '../shared/home/lock.ts'
import { killOrphans } from './agents/orphans.ts'
import type { EventStore } from './events/event-store.ts'
import type { Log } from './log/log.ts'
import type { OAuthDependencies } from './oauth/dependencies.ts'
import { OAuth, type OAuthEvent } from './oauth/oauth.ts'
import type { TokenRecord } from './oauth/tokens/token-record.ts'
import type { Succession } from './restart/succession.ts'

/** What logins and tokens read from the configuration. */
type Settings = { readonly gateway: Gateway; readonly env: NodeJS.ProcessEnv }

type LeadershipParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly apiToken: string
  readonly settings: Settings
  readonly events: EventStore
  readonly log: Log
  readonly count: NonNullable<OAuthDependencies['count']>
  /** Reads the configuration and `.env` again. */
  readonly reload: () => Promise<unknown>
  readonly succession: Pick<Succession, 'awaitSuccessor'>
}

/** A restart waits for a refresh for as long as its request may take. */
const restarting = { reason: 'the daemon was restarted', refreshLimitMs: 31_000 }

/**
 * What only one daemon of a home does: it has the lock, and refreshes tokens. A daemon that was replaced reads
 * the tokens that the other one stores.
 */
export class Leadership {
  readonly #parts: LeadershipParts
  readonly #settings: Settings
  #oauth: OAuth
  #lastHeld:
    { readonly own: readonly HeldSecret[]; readonly all: readonly HeldSecret[] } | undefined
  #lock: HomeLock | undefined

  constructor(parts: LeadershipParts) {
    this.#parts = parts
    this.#settings = { gateway: { ...parts.settings.gateway }, env: { ...parts.settings.env } }
    this.#oauth = this.#createOAuth([])
  }

  /** Logins and tokens, until `resume` makes new ones. */
  oauth(): OAuth {
    return this.#oauth
  }

  /** As `OAuth.access`, of the current `oauth`. */
  readonly access: OAuth['access'] = async (...request) => this.#oauth.access(...request)

  /** As `OAuth.held`, of the current `oauth`, and the token of the local API. */
  readonly held: OAuth['held'] = async () => {
    const own = await this.#oauth.held()
    if (this.#lastHeld?.own === own) return this.#lastHeld.all
    const api = {
      kind: 'api-token',
      name: 'the token of the local API',
      value: this.#parts.apiToken,
    } as const
    this.#lastHeld = { own, all: [...own, api] }
    return this.#lastHeld.all
  }

  /** Logins and tokens use other settings from now on. */
  configure({ gateway, env }: Settings): void {
    replaceContent(this.#settings.gateway, gateway)
    replaceContent(this.#settings.env, env)
    this.#oauth.configured()
  }

  /** Leads from now on; `unsaved` are tokens that the daemon before could not write to the disk. */
  async acquire(lock: HomeLock, unsaved: readonly TokenRecord[]): Promise<void> {
    this.#lock = lock
    await killOrphans(this.#parts.home, this.#parts.log)
    if (unsaved.length > 0) this.#oauth = this.#createOAuth(unsaved)
    // Before the first request: a killed daemon may have used up the stored tokens.
    await this.#oauth.start()
  }

  /** Refreshes nothing from now on; returns the tokens that could not be written to the disk. */
  async suspend(): Promise<readonly TokenRecord[]> {
    await this.#oauth.close(restarting)
    return this.#oauth.unsaved()
  }

  /** Passes the lock to another process. Throws what the file system refuses. */
  async transferTo(lockToken: string): Promise<void> {
    if (!this.#lock) throw new Error('the home is not locked')
    await this.#lock.transferTo(lockToken)
  }

  /** Leads again, after a new process that failed. */
  async resume(unsaved: readonly TokenRecord[]): Promise<void> {
    if (!(await this.#lock?.isOurs())) this.#lock = await this.#acquireAgain()
    this.#oauth = this.#createOAuth(unsaved)
    await this.#oauth.start()
  }

  /** Refuses new logins, for a stop that waits for agents first. */
  refuseLogins(): void {
    this.#oauth.refuseLogins()
  }

  /** Ends logins and refreshes, and keeps the lock. */
  async close(): Promise<void> {
    await this.#oauth.close()
  }

  async release(): Promise<void> {
    await this.#lock?.release()
  }

  #createOAuth(unsaved: readonly TokenRecord[]): OAuth {
    const { home, processEnv, events, log, count, reload, succession } = this.#parts
    const { gateway, env } = this.#settings
    const announce = announceTo(events)
    const isReplaced = async () => (await succession.awaitSuccessor()) !== undefined
    const settings = { home, gateway, env, processEnv }
    const dependencies = { ...settings, log, announce, count, reload, isReplaced }
    return new OAuth(dependencies, unsaved)
  }

  /** Another start may have the lock for a moment: it finds our port in use, and releases it. */
  async #acquireAgain(): Promise<HomeLock | undefined> {
    const { home, log } = this.#parts
    for (let tries = 0; tries < 50; tries += 1) {
      try {
        return await acquireLock(home)
      } catch (error) {
        if (!(error instanceof DoorwardError) || error.code !== 'already-running') throw error
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    log.error('another daemon has the lock of this home: this one goes on without it')
    return undefined
  }
}

/** Changes an object that others have a reference to. */
const replaceContent = <Value extends object>(target: Value, source: Value): void => {
  for (const key of Object.keys(target)) Reflect.deleteProperty(target, key)
  Object.assign(target, source)
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
