import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { RequestListener } from 'node:http'
import type { Router } from '@koa/router'
import { z } from 'zod'
import { tunnelPrograms, type TunnelStatus } from '../../shared/api-tunnel.ts'
import type { LiveConfig } from '../config/live-config.ts'
import type { EventStore } from '../events/event-store.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { Listeners } from '../http/server.ts'
import type { Leadership } from '../leadership.ts'
import type { Succession } from '../restart/succession.ts'
import { Hooks } from '../sources/hooks.ts'
import { isReplaced } from '../util/replaced.ts'
import { Pings } from './pings.ts'
import type { Tunnel, TunnelParts } from './tunnel.ts'

const startSchema = z.strictObject({ with: z.enum(tunnelPrograms).optional() })

/** The tunnel, whose code is loaded when one is used. */
export class Tunnels {
  readonly #parts: TunnelParts
  #tunnel: Tunnel | undefined

  constructor(parts: TunnelParts) {
    this.#parts = parts
  }

  /** Answers pings at the port for webhooks, and hands on every other request. */
  before(next: RequestListener): RequestListener {
    return this.#parts.pings.before(next)
  }

  /** Starts the tunnel that the daemon before had. */
  async resume(): Promise<void> {
    const isThere = await access(join(this.#parts.home.run, 'tunnel.json')).then(
      () => true,
      () => false,
    )
    if (!isThere) return
    try {
      await (await this.#load()).resume()
    } catch (error) {
      this.#parts.log.warn({ error: errorName(error) }, 'the tunnel is not opened again')
    }
  }

  status(): TunnelStatus {
    const leadsTo = this.#parts.target() ?? null
    return this.#tunnel?.status() ?? { state: 'off', leadsTo, moved: [], problems: [] }
  }

  /** Ends the program, as the daemon stops. */
  async close(): Promise<void> {
    await this.#tunnel?.close()
  }

  /** Leaves it to the daemon that replaces this one. */
  release(): void {
    this.#tunnel?.release()
  }

  routes(): Router {
    const router = exactRouter()
    router.get('/daemon/tunnel', (ctx) => {
      ctx.body = this.status()
    })
    router.post('/daemon/tunnel', async (ctx) => {
      const { with: program } = await readJsonBody(ctx, startSchema)
      await (await this.#load()).start(program)
      ctx.body = this.status()
    })
    router.delete('/daemon/tunnel', async (ctx) => {
      await this.#tunnel?.stop()
      ctx.body = this.status()
    })
    return router
  }

  async #load(): Promise<Tunnel> {
    if (this.#tunnel) return this.#tunnel
    // Its file belongs to the other version then.
    if (await isReplaced())
      throw new DoorwardError('tunnel-failed', 'another version of doorward was installed', {
        hint: 'doorward daemon restart',
      })
    const { Tunnel } = await import('./tunnel.ts')
    this.#tunnel ??= new Tunnel(this.#parts)
    return this.#tunnel
  }
}

type Services = Pick<TunnelParts, 'home' | 'log'> & {
  readonly listeners: Pick<Listeners, 'publicUrl'>
  readonly live: Pick<LiveConfig, 'current' | 'reload'>
  readonly leadership: Pick<Leadership, 'access'>
  readonly memory: { readonly events: EventStore }
  readonly succession: Pick<Succession, 'successor'>
}

export const createTunnels = ({ home, log, listeners, live, ...services }: Services): Tunnels => {
  const { leadership, memory, succession } = services
  const { events } = memory
  return new Tunnels({
    home,
    target: listeners.publicUrl,
    current: live.current,
    reload: () => live.reload(),
    hooks: new Hooks({ current: live.current, access: leadership.access, events }),
    pings: new Pings(),
    events,
    log,
    isServing: () => succession.successor() === undefined,
  })
}
