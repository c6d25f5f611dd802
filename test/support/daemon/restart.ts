import { once } from 'node:events'
import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Restarted, restartedSchema } from '../../../shared/api/api.ts'
import { type Client, connect } from '../../../shared/client/client.ts'
import type { Home } from '../../../shared/home/home.ts'
import { isAlive } from '../../../shared/home/lock.ts'
import type { RunningDaemon } from './daemon.ts'

/** Asks the daemon for a restart; throws its problem. */
export const restart = async (client: Client): Promise<Restarted> =>
  restartedSchema.parse(await client.post('/daemon/restart', undefined, { timeoutMs: 60_000 }))

/** Ends the daemon of a home that no child of this test is, and waits until its process has gone. */
export const stopHome = async (home: Home): Promise<void> => {
  const client = await connect(home)
  await client.post('/daemon/shutdown')
  client.close()
  await untilDead(client.daemon.pid)
}

/** Waits until a process that is no child of this one has gone. */
export const untilDead = async (pid: number): Promise<void> => {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Waits for a process of this test to end, and says how. */
export const untilExit = async ({ process: child }: RunningDaemon): Promise<string> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return String(child.signalCode ?? child.exitCode)
}

/** The pid that the lock names as soon as that is not this one any more. */
export const untilLockMoves = async (home: Home, from: number): Promise<number> => {
  const holder = async () =>
    Number.parseInt(await readFile(join(home.run, 'daemon.lock'), 'utf8').catch(() => ''), 10)
  const watcher = watch(home.run)
  try {
    for (;;) {
      const changed = once(watcher, 'change')
      const pid = await holder()
      if (pid > 0 && pid !== from) return pid
      await changed
    }
  } finally {
    watcher.close()
  }
}

/** An agent over HTTP that answers when the test says so. */
export type HeldAgent = {
  readonly url: string
  /** Waits for the next prompt that nobody has taken yet. */
  readonly next: () => Promise<{
    readonly prompt: string
    readonly eventFile: string | undefined
    readonly answer: (text: string) => void
  }>
  readonly close: () => void
}

export const startHeldAgent = async (): Promise<HeldAgent> => {
  type Asked = Awaited<ReturnType<HeldAgent['next']>>
  const asked: Asked[] = []
  let wake = (): void => undefined
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { prompt, eventFile } = JSON.parse(Buffer.concat(chunks).toString()) as {
      prompt: string
      eventFile?: string
    }
    asked.push({ prompt, eventFile, answer: (text) => response.end(text) })
    wake()
  }
  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    next: async () => {
      for (;;) {
        const first = asked.shift()
        if (first) return first
        await new Promise<void>((resolve) => (wake = resolve))
      }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
