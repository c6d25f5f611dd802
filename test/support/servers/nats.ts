import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { filesIn, temporaryFolder } from '../temporary.ts'

/** A real `nats-server` with JetStream, at a port of this machine. */
export type Broker = {
  readonly port: number
  readonly url: string
  /** What it wrote to its log so far; with `-DV` each message is in it. */
  readonly log: () => string
  /** True where a file of its store folder has this text. */
  readonly hasOnDisk: (text: string) => Promise<boolean>
  /** kill -9: what it had in memory is gone. */
  readonly kill: () => Promise<void>
  /** Starts it again at the same port. */
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

const running = new Set<ChildProcess>()

/** Starts a broker; `config` is added to its configuration. */
export const startBroker = async (
  config = '',
  { address = '127.0.0.1', under = [] as readonly string[] } = {},
): Promise<Broker> => {
  const store = await temporaryFolder()
  const file = join(await temporaryFolder(), 'nats.conf')
  let text = ''
  let port = -1
  let child: ChildProcess
  const start = async (): Promise<void> => {
    // The log goes to a pipe: it must not count as the disk of the broker.
    const lines = [`listen: "${address}:${port}"`, `jetstream { store_dir: "${store}" }`, config]
    await writeFile(file, lines.join('\n'))
    const [program, ...args] = [...under, 'nats-server', '-c', file, '-DV']
    child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    running.add(child)
    child.once('exit', () => running.delete(child))
    port = await untilReady(child, (chunk) => (text += chunk))
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  await start()
  return {
    port,
    url: `nats://${address}:${port}`,
    log: () => text,
    hasOnDisk: async (wanted) => {
      const files = await filesIn(store)
      const texts = await Promise.all(files.map((name) => readFile(join(store, name), 'latin1')))
      return texts.some((content) => content.includes(wanted))
    },
    kill: () => end('SIGKILL'),
    start,
    stop: () => end('SIGTERM'),
  }
}

/** Resolves with the port at which it listens. */
const untilReady = async (child: ChildProcess, log: (chunk: string) => void): Promise<number> =>
  new Promise((resolve, reject) => {
    let text = ''
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`nats-server ended: ${text}`)))
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      log(chunk)
      if (text.includes('Server is ready')) return
      text += chunk
      const [, port] = /client connections on .*:(\d+)/.exec(text) ?? []
      if (port !== undefined && text.includes('Server is ready')) resolve(Number(port))
    })
  })

/** Ends what a failed test left running; called once by the root hook. */
export const killBrokers = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
