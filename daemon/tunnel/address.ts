import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { type Home, systemReason } from '../../shared/home/home.ts'
import { withConfigLock } from '../../shared/home/lock.ts'
import { setServer } from '../../shared/set-server.ts'
import type { Hooks } from '../sender-apis/hooks.ts'
import { knownError } from '../util/assets.ts'
import type { Engine } from '../webhook/engine.ts'

/** A sender whose API fails is asked once a minute. */
const againMs = 60_000

export type AddressParts = {
  readonly home: Home
  readonly live: {
    readonly current: () => Pick<Engine, 'config' | 'env'>
    readonly reload: () => Promise<unknown>
  }
  readonly hooks: Hooks
}

/** The address of a tunnel, in `server.public_url` and in the hooks that `webhook connect` made. */
export class Address {
  readonly #parts: AddressParts
  readonly #tell: (detail: string) => void
  /** When the hooks get it. */
  #hooksAtMs = Infinity
  /** Paths of the webhooks whose hooks got it. */
  moved: readonly string[] = []
  /** Why it is not written, or hooks do not have it. */
  problem: DoorwardError | undefined
  hooksProblem: DoorwardError | undefined

  constructor(parts: AddressParts, tell: (detail: string) => void) {
    this.#parts = parts
    this.#tell = tell
  }

  /** A new one goes into the configuration; the hooks get it once it is clear whether it works. */
  async use(url: string): Promise<void> {
    this.moved = []
    this.#hooksAtMs = 0
    await this.#write(url)
  }

  /** Does what is due of it: again what failed, and the hooks. */
  async settle(url: string, signal: AbortSignal): Promise<void> {
    if (this.problem) await this.#write(url)
    if (performance.now() >= this.#hooksAtMs) await this.#moveHooks(url, signal)
  }

  clear(): void {
    this.problem = this.hooksProblem = undefined
  }

  async #write(url: string): Promise<void> {
    const { home, live } = this.#parts
    try {
      if (live.current().config.gateway.server.public_url?.replace(/\/+$/, '') !== url) {
        await writePublicUrl(home, url)
        await live.reload()
        this.#tell(`server.public_url is now ${url}`)
      }
      this.problem = undefined
    } catch (error) {
      const { message, hint } = knownError(error)
      this.problem = failed(`server.public_url is not ${url} yet: ${message}`, hint)
    }
  }

  async #moveHooks(url: string, signal: AbortSignal): Promise<void> {
    const { hooks, live } = this.#parts
    const failures: string[] = []
    for (const { path, repository, state, problem } of await hooks.list(signal))
      try {
        const own = live.current().config.webhooks.find((webhook) => webhook.path === path)?.source
        if (!own || own.provider === 'stripe' || own.mode === 'poll') continue
        if (state === 'unknown') failures.push(`${repository} (${problem})`)
        if (state !== 'moved') continue
        await hooks.connect({ path, provider: own.provider, repository }, signal)
        this.moved = [...this.moved, path]
        this.#tell(`the hook of ${repository} delivers to ${url}`)
      } catch (error) {
        failures.push(`${repository} (${knownError(error).message})`)
      }
    const isDone = failures.length === 0
    this.#hooksAtMs = isDone ? Infinity : performance.now() + againMs
    this.hooksProblem = isDone
      ? undefined
      : failed(`hooks that may have an old address: ${failures.join(', ')}`)
  }
}

const failed = (message: string, hint = 'doorward webhook hooks'): DoorwardError =>
  new DoorwardError('tunnel-failed', message, { hint })

/** The rest of `gateway.yaml` keeps every byte. Throws `config-invalid`, `home-unusable`. */
const writePublicUrl = async (home: Home, url: string): Promise<void> =>
  withConfigLock(home, async () => {
    try {
      // The owner may have made the name a link.
      const path = await realpath(join(home.config, 'gateway.yaml'))
      const text = await readFile(path, 'utf8')
      const changed = setServer(text, { public_url: url })
      if (changed !== text) await writeFileAtomic(path, changed, (await stat(path)).mode & 0o777)
    } catch (error) {
      if (error instanceof DoorwardError) throw error
      const hint = `make it writable for you, or write public_url: ${url} below server`
      const reason = systemReason(error)
      throw new DoorwardError('home-unusable', `cannot write gateway.yaml: ${reason}`, {
        cause: error,
        hint,
      })
    }
  })
