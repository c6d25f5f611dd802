import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Delivery, secret } from '../load/delivery.ts'
import { createSender } from '../load/sender.ts'
import { serverCore } from '../machine.ts'
import { endWithUs } from './end-with-us.ts'

/** A measured server, in its own process. */
export type Server = {
  readonly name: string
  readonly pid: number
  /** Where it accepts deliveries. */
  readonly url: string
  /** From its start to the first good answer to a delivery. */
  readonly startMs: number
  readonly stop: () => Promise<void>
}

export type Program = {
  readonly name: string
  readonly argv: readonly string[]
  readonly url: string
  /** The server counts as started once it accepts this. */
  readonly first: Delivery
  readonly env?: Readonly<Record<string, string>>
}

const startLimitMs = 60_000

/** Starts a server on its core, and resolves when it accepts deliveries. Throws when it never does. */
export const startServer = async ({ name, argv, url, first, env }: Program): Promise<Server> => {
  const start = performance.now()
  const child = spawn('taskset', ['--cpu-list', serverCore, ...argv], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, BENCH_SECRET: secret, ...env },
  })
  endWithUs(child)
  const ended = once(child, 'exit')
  const sender = createSender(url, first)
  for (;;) {
    const { status } = await sender.post()
    if (status >= 200 && status < 300) break
    if (child.exitCode !== null) throw new Error(`${name} exited immediately`)
    if (performance.now() - start > startLimitMs) throw new Error(`${name} does not answer`)
    await wait(1)
  }
  const startMs = performance.now() - start
  sender.close()
  if (child.pid === undefined) throw new Error(`${name} did not start`)
  return {
    name,
    pid: child.pid,
    url,
    startMs,
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** A port that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
