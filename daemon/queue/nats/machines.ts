import { z } from 'zod'
import type { Broker as BrokerStatus, Machine, Status } from '../../../shared/api/api.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import { machineRole } from '../../../shared/config/values.ts'
import { version } from '../../../shared/version.ts'
import {
  type AgentFault,
  agentFaultSchema,
  findAgentFaults,
  type MachineWithSettings,
} from './agent-faults.ts'
import { type Broker, type Link, machinesSubject, runsStream } from './broker.ts'
import { readNote, writeNote } from './messages.ts'
import type { Identity } from '../../util/identity.ts'

/* Each machine says every 10 seconds who it is; one that was not heard of for 30 is gone. */

type MachinesParts = {
  readonly broker: Broker
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly role: Machine['role']
  readonly agents: () => MachineWithSettings['agents']
  /** Those that the rules of a receiver run. */
  readonly needed: () => ReadonlyMap<string, Agent>
  readonly redelivered: () => number
  /** Why a worker gets no runs of some agents. */
  readonly notOffered: () => string | undefined
  /** Called for each machine that was not heard of before, or has other agents now. */
  readonly heard: () => void
}

/** What a machine says of itself, as far as this one knows it. */
const selfSchema = z.object({
  name: z.string().max(100),
  role: machineRole,
  version: z.string().max(100),
  sentAt: z.int(),
  agents: z
    .array(
      z.object({
        name: z.string().max(200),
        running: z.int(),
        free: z.int(),
        settings: z.record(z.string().max(40), z.string().max(40)).optional(),
      }),
    )
    .max(1000),
  /** Of a receiver. */
  faults: z.array(agentFaultSchema).max(1000).optional(),
})
type Self = z.input<typeof selfSchema>
type Seen = MachineWithSettings & Pick<Self, 'faults'>

const maxMachines = 1000

const goneMs = 30_000
/** How long after a connection machines have to introduce themselves. */
const settleMs = 2000
const otherKey =
  "a machine uses a different queue key: the two machines cannot read each other's messages"

export class Machines {
  readonly #parts: MachinesParts
  readonly #seen = new Map<string, Seen>()
  #linkedAt = Infinity
  #connection: Link['nc'] | undefined
  #waiting: number | undefined
  /** When a machine was heard of whose key differs. */
  #strangerAt: number | undefined

  constructor(parts: MachinesParts) {
    this.#parts = parts
    parts.broker.onLink((link) => {
      this.#linkedAt = Date.now()
      this.#listen(link)
      void this.tick()
    })
  }

  status(): Pick<Status, 'machines'> & {
    readonly broker: BrokerStatus
    readonly agentFaults: readonly AgentFault[]
  } {
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
      machines: [...this.#seen.values()]
        .toSorted((a, b) => a.name.localeCompare(b.name))
        .map(({ faults: _faults, agents: all, ...machine }) => ({
          ...machine,
          agents: all.map(({ settings: _settings, ...agent }) => agent),
        })),
      agentFaults: this.#agentFaults(),
    }
  }

  /** True once machines had time to introduce themselves, and none of them runs this agent. */
  isMissing(agent: string): boolean {
    this.#forget()
    return (
      this.#isSettled() &&
      ![...this.#seen.values()].some(({ agents }) => agents.some(({ name }) => name === agent))
    )
  }

  /** What this receiver finds, or what receivers tell this worker. */
  #agentFaults(): AgentFault[] {
    const { role, needed, identity } = this.#parts
    const seen = [...this.#seen.values()]
    if (role !== 'worker') return this.#isSettled() ? findAgentFaults(needed(), seen) : []
    const told = seen.flatMap(({ faults = [] }) => faults)
    // Nothing is heard before the identity is read.
    if (told.length === 0) return []
    const { name } = identity()
    const own = told.filter(({ machine }) => machine === undefined || machine === name)
    return [...new Map(own.map((fault) => [JSON.stringify(fault), fault])).values()]
  }

  #isSettled(): boolean {
    return this.#parts.broker.link !== undefined && Date.now() - this.#linkedAt > settleMs
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
    const faults = role === 'worker' ? {} : { faults: this.#agentFaults() }
    const self: Self = { name, role, version, agents: [...agents()], sentAt: Date.now(), ...faults }
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
        const known = this.#seen.get(note.id)
        if (!known) this.#report()
        const seenAt = new Date(now).toISOString()
        this.#seen.set(note.id, { ...machine, seenAt, clockMs: sentAt - now })
        if (namesOf(known) !== namesOf(machine)) this.#parts.heard()
      },
    })
  }

  #forget(): void {
    const limit = Date.now() - goneMs
    for (const [id, { seenAt }] of this.#seen) if (Date.parse(seenAt) < limit) this.#seen.delete(id)
  }
}

const namesOf = (machine: Pick<Seen, 'agents'> | undefined): string | undefined =>
  machine?.agents.map(({ name }) => name).join(' ')
