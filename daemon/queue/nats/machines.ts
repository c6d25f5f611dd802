import { z } from 'zod'
import type { Broker as BrokerStatus, Machine, Status } from '../../../shared/api.ts'
import { machineRole } from '../../../shared/config/values.ts'
import { version } from '../../../shared/version.ts'
import { type Broker, type Link, machinesSubject, runsStream } from './broker.ts'
import { readNote, writeNote } from './messages.ts'
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'

/** Who this machine is for the others. */
export type Identity = {
  readonly id: string
  /** Of its host, and the beginning of its id, as a host may run several. */
  readonly name: string
  /** Seals what only this receiver reads. */
  readonly key: Buffer
}

const form = /^([0-9a-f]{16}) ([0-9a-f]{64})\s*$/

/** Made at the first start, and kept, as answers may come after a restart. Throws `home-insecure`. */
export const readIdentity = async (home: Home): Promise<Identity> => {
  const path = join(home.run, 'machine')
  let [, id, key] = form.exec((await readSecretFile(path)) ?? '') ?? []
  if (!id || !key) {
    id = randomBytes(8).toString('hex')
    key = randomBytes(32).toString('hex')
    await writeFileAtomic(path, `${id} ${key}\n`)
  }
  const host = hostname()
    .replaceAll(/[^\w.-]/g, '-')
    .slice(0, 60)
  return { id, name: `${host}-${id.slice(0, 4)}`, key: Buffer.from(key, 'hex') }
}

/* Each machine says every 10 seconds who it is; one that was not heard of for 30 is gone. */

type MachinesParts = {
  readonly broker: Broker
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly role: Machine['role']
  readonly agents: () => Machine['agents']
  readonly redelivered: () => number
  /** Why a worker gets no runs of some agents. */
  readonly notOffered: () => string | undefined
  /** Called for each machine that was not heard of before. */
  readonly heard: () => void
}

/** What a machine says of itself, as far as this one knows it. */
const selfSchema = z.object({
  name: z.string().max(100),
  role: machineRole,
  version: z.string().max(100),
  sentAt: z.int(),
  agents: z
    .array(z.object({ name: z.string().max(200), running: z.int(), free: z.int() }))
    .max(1000),
})
type Self = z.input<typeof selfSchema>

const maxMachines = 1000

const goneMs = 30_000
const otherKey =
  "a machine uses a different queue key: the two machines cannot read each other's messages"

export class Machines {
  readonly #parts: MachinesParts
  readonly #seen = new Map<string, Machine>()
  #connection: Link['nc'] | undefined
  #waiting: number | undefined
  /** When a machine was heard of whose key differs. */
  #strangerAt: number | undefined

  constructor(parts: MachinesParts) {
    this.#parts = parts
    parts.broker.onLink((link) => {
      this.#listen(link)
      void this.tick()
    })
  }

  status(): Pick<Status, 'machines'> & { readonly broker: BrokerStatus } {
    const { broker, redelivered, notOffered } = this.#parts
    this.#forget()
    const isStranger = this.#strangerAt !== undefined && Date.now() - this.#strangerAt < goneMs
    const problem = broker.problem ?? (isStranger ? otherKey : undefined)
    const agents = notOffered()
    return {
      broker: {
        connected: broker.link !== undefined,
        ...(problem !== undefined && { problem }),
        ...(broker.link && agents !== undefined && { notOffered: agents }),
        ...(broker.version !== undefined && { version: broker.version }),
        ...(broker.server !== undefined && { server: broker.server }),
        ...(broker.link && this.#waiting !== undefined && { waiting: this.#waiting }),
        redelivered: redelivered(),
      },
      machines: [...this.#seen.values()].toSorted((a, b) => a.name.localeCompare(b.name)),
    }
  }

  /** True while a receiver is heard of that has a key of this machine. */
  hasReceiver(): boolean {
    this.#forget()
    return [...this.#seen.values()].some(({ role }) => role !== 'worker')
  }

  /** Every 10 seconds. */
  async tick(): Promise<void> {
    this.#report()
    await this.measure()
  }

  #report(): void {
    const { broker, identity, keys, agents } = this.#parts
    const { id, name } = identity()
    // Machines of older versions know a receiver as `door`.
    const role = this.#parts.role === 'receiver' ? 'door' : this.#parts.role
    const self: Self = { name, role, version, agents: agents(), sentAt: Date.now() }
    broker.link?.nc.publish(machinesSubject, writeNote('machine', id, self, keys()))
  }

  /** How much waits. */
  async measure(): Promise<void> {
    const { broker, role } = this.#parts
    const { link } = broker
    // The broker may let a worker ask for less.
    if (!link || role === 'worker') return
    try {
      const [{ state }, consumers] = await Promise.all([
        link.jsm.streams.info(runsStream),
        link.jsm.consumers.list(runsStream).next(),
      ])
      const taken = consumers.reduce((sum, { num_ack_pending: count }) => sum + count, 0)
      this.#waiting = Math.max(0, state.messages - taken)
    } catch {
      this.#waiting = undefined
    }
  }

  #listen({ nc }: Link): void {
    if (this.#connection === nc) return
    this.#connection = nc
    nc.subscribe(machinesSubject, {
      callback: (error, { data }) => {
        if (error) return
        const now = Date.now()
        const note = readNote('machine', data, this.#parts.keys())
        if (!note) {
          this.#strangerAt = now
          return
        }
        const { data: self } = selfSchema.safeParse(note.value)
        if (!self || (this.#seen.size >= maxMachines && !this.#seen.has(note.id))) return
        const { sentAt, ...machine } = self
        // It has not heard of this one yet.
        const isNew = !this.#seen.has(note.id)
        if (isNew) this.#report()
        const seenAt = new Date(now).toISOString()
        this.#seen.set(note.id, { ...machine, seenAt, clockMs: sentAt - now })
        if (isNew) this.#parts.heard()
      },
    })
  }

  #forget(): void {
    const limit = Date.now() - goneMs
    for (const [id, { seenAt }] of this.#seen) if (Date.parse(seenAt) < limit) this.#seen.delete(id)
  }
}
