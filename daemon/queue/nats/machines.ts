import type { Broker as BrokerStatus, Machine, Status } from '../../../shared/api.ts'
import { version } from '../../../shared/version.ts'
import { type Broker, type Link, machinesSubject, runsStream } from './broker.ts'
import type { Identity } from './identity.ts'
import { readNote, writeNote } from './messages.ts'

/* Each machine says every 10 seconds who it is; one that was not heard of for 30 is gone. */

type MachinesParts = {
  readonly broker: Broker
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly role: Machine['role']
  readonly agents: () => Machine['agents']
  readonly redelivered: () => number
}

const goneMs = 30_000

export class Machines {
  readonly #parts: MachinesParts
  readonly #seen = new Map<string, Machine>()
  #connection: Link['nc'] | undefined
  #waiting: number | undefined

  constructor(parts: MachinesParts) {
    this.#parts = parts
    parts.broker.onLink((link) => {
      this.#listen(link)
      void this.tick()
    })
  }

  status(): Pick<Status, 'machines'> & { readonly broker: BrokerStatus } {
    const { broker, redelivered } = this.#parts
    this.#forget()
    return {
      broker: {
        connected: broker.link !== undefined,
        ...(broker.problem !== undefined && { problem: broker.problem }),
        ...(broker.version !== undefined && { version: broker.version }),
        ...(broker.server !== undefined && { server: broker.server }),
        ...(broker.link && this.#waiting !== undefined && { waiting: this.#waiting }),
        redelivered: redelivered(),
      },
      machines: [...this.#seen.values()].toSorted((a, b) => a.name.localeCompare(b.name)),
    }
  }

  isHere(name: string): boolean {
    this.#forget()
    return [...this.#seen.values()].some((machine) => machine.name === name)
  }

  /** Every 10 seconds. */
  async tick(): Promise<void> {
    const { broker, identity, keys, role, agents } = this.#parts
    const { link } = broker
    if (!link) return
    const { id, name } = identity()
    const self = { name, role, version, agents: agents() }
    link.nc.publish(machinesSubject, writeNote('machine', id, self, keys()))
    await this.measure()
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
        const note = error ? undefined : readNote('machine', data, this.#parts.keys())
        if (!note) return
        const machine = note.value as Omit<Machine, 'seenAt'>
        this.#seen.set(note.id, { ...machine, seenAt: new Date().toISOString() })
      },
    })
  }

  #forget(): void {
    const limit = Date.now() - goneMs
    for (const [id, { seenAt }] of this.#seen) if (Date.parse(seenAt) < limit) this.#seen.delete(id)
  }
}
