import { execFileSync } from 'node:child_process'
import { type Broker, startBroker } from './nats.ts'
import { startLink } from './link.ts'

/** A broker, and a worker's way to it that can be cut without either side noticing. */
export type Network = {
  readonly broker: Broker
  /** A program with its arguments that runs the worker where it is. */
  readonly under: readonly string[]
  /** The broker as the worker sees it. */
  readonly url: string
  readonly cut: () => void
  readonly restore: () => void
  readonly close: () => Promise<void>
}

/**
 * The broker and the worker in network namespaces of their own, this process in a third, where that is allowed.
 * Elsewhere all are in one, and a relay that stalls plays the cable.
 */
export const startNetwork = async (): Promise<Network> => (makeNamespaces() ? between() : relayed())

const name = (what: string): string => `doorward-${process.pid}-${what}`
const ip = (...args: readonly string[]) => execFileSync('ip', args, { stdio: 'pipe' })
const [brokerSpace, workerSpace] = [name('broker'), name('worker')]
/** At most 15 characters. */
const cable = `doorw${process.pid}`
const address = { door: '10.213.77.1', broker: '10.213.77.2', worker: '10.213.77.6' }
const brokerForWorker = '10.213.77.5'

/** False where that is not allowed. */
const makeNamespaces = (): boolean => {
  // Also after a test that failed, as the addresses are the same in the next run.
  process.once('exit', removeNamespaces)
  try {
    for (const space of [brokerSpace, workerSpace]) ip('netns', 'add', space)
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'toDoor', 'netns', brokerSpace)
    const ends = ['toWorker', 'type', 'veth', 'peer', 'name', 'toBroker', 'netns', workerSpace]
    ip('-n', brokerSpace, 'link', 'add', ...ends)
    const connected = [
      [[], cable, address.door],
      [['-n', brokerSpace], 'toDoor', address.broker],
      [['-n', brokerSpace], 'toWorker', brokerForWorker],
      [['-n', workerSpace], 'toBroker', address.worker],
    ] as const
    for (const [space, device, own] of connected) {
      ip(...space, 'address', 'add', `${own}/30`, 'dev', device)
      ip(...space, 'link', 'set', device, 'up')
    }
    for (const space of [brokerSpace, workerSpace]) ip('-n', space, 'link', 'set', 'lo', 'up')
    return true
  } catch {
    removeNamespaces()
    return false
  }
}

const removeNamespaces = (): void => {
  for (const space of [brokerSpace, workerSpace])
    try {
      ip('netns', 'delete', space)
    } catch {
      // It was not made, or is removed.
    }
}

const between = async (): Promise<Network> => {
  const within = (space: string) => ['ip', 'netns', 'exec', space]
  const broker = await startBroker('', { address: '0.0.0.0', under: within(brokerSpace) })
  const urlAt = (host: string) => `nats://${host}:${broker.port}`
  const set = (state: 'up' | 'down') => ip('-n', brokerSpace, 'link', 'set', 'toWorker', state)
  return {
    broker: { ...broker, url: urlAt(address.broker) },
    under: within(workerSpace),
    url: urlAt(brokerForWorker),
    cut: () => set('down'),
    restore: () => set('up'),
    close: async () => {
      await broker.stop()
      removeNamespaces()
    },
  }
}

const relayed = async (): Promise<Network> => {
  const broker = await startBroker()
  const link = await startLink(broker.port)
  return {
    broker,
    under: [],
    url: `nats://127.0.0.1:${link.port}`,
    cut: link.cut,
    restore: link.restore,
    close: async () => {
      link.close()
      await broker.stop()
    },
  }
}
