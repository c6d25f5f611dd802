import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { daemonMain, nodeOptions } from '../../shared/client/spawn.ts'
import type { Delivery } from '../load/delivery.ts'
import { allCores } from '../machine.ts'
import { type Doorward, type DoorwardOptions, startDoorward } from './doorward.ts'
import { endWithUs } from './end-with-us.ts'
import { freePort } from './server.ts'

/** A receiver, a broker and two workers, each in its own process. */
export type Machines = {
  readonly receiver: Doorward
  readonly broker: number
  readonly workers: readonly number[]
  readonly stop: () => Promise<void>
}

/** What the rows of this group have in common with a daemon of one machine. */
export const shared = {
  webhooks: `  - path: /webhook/machines
    agent: quick
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "{{event.pull_request.body}}"
`,
  agents: '  quick: { kind: echo, concurrency: 64 }\n',
  queue: 'max_events: 5000, concurrency: 64',
} satisfies Record<string, string>

export const startMachines = async (first: Delivery): Promise<Machines> => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-bench-'))
  const port = await freePort()
  const broker = start(['nats-server', '-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder])
  await untilText(broker, 'Server is ready')
  const env = {
    NATS_URL: `nats://127.0.0.1:${port}`,
    DOORWARD_QUEUE_KEY: randomBytes(32).toString('base64'),
  }
  const gateway = (role: string) => `queue: { engine: nats, role: ${role}, ${shared.queue} }\n`
  const workers = await Promise.all([1, 2].map(async () => startWorker(gateway('worker'), env)))
  const options: DoorwardOptions = { ...shared, first, gateway: gateway('receiver'), env }
  const receiver = await startDoorward(options)
  return {
    receiver,
    broker: broker.pid ?? 0,
    workers: workers.map(({ pid }) => pid),
    stop: async () => {
      await receiver.stop()
      for (const worker of workers) await worker.stop()
      await end(broker)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const startWorker = async (gateway: string, env: Readonly<Record<string, string>>) => {
  const home = await mkdtemp(join(tmpdir(), 'doorward-bench-'))
  const config = join(home, 'config')
  await mkdir(config, { mode: 0o700 })
  await writeFile(join(config, 'gateway.yaml'), `server: { port: ${await freePort()} }\n${gateway}`)
  const agents = `agents:\n  echo: { kind: echo, concurrency: 4 }\n${shared.agents}`
  await writeFile(join(config, 'agents.yaml'), agents)
  const child = start([process.execPath, ...nodeOptions, daemonMain, '--home', home], env)
  // The daemon reports to a parent with a channel when it listens.
  await once(child, 'message')
  child.disconnect()
  return {
    pid: child.pid ?? 0,
    stop: async () => {
      await end(child)
      await rm(home, { recursive: true, force: true })
    },
  }
}

const start = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const child = spawn('taskset', ['--cpu-list', allCores, ...argv], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, ...env },
  })
  endWithUs(child)
  child.stderr?.resume()
  return child
}

const untilText = async (child: ChildProcess, wanted: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let text = ''
    child.once('exit', () => reject(new Error(`nats-server exited: ${text}`)))
    child.stderr?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes(wanted)) resolve()
    })
  })

const end = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
