import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import type { Home } from '../../../shared/home/home.ts'
import { type RunningDaemon, spawnDaemon, startDaemon, untilListening } from './daemon.ts'
import { type HomeFiles, temporaryHome } from '../temporary.ts'

/** A key of `queue.key_env`. */
export const newQueueKey = (): string => randomBytes(32).toString('base64')

export type MachineOptions = HomeFiles & {
  readonly role: 'receiver' | 'worker' | 'both'
  /** Where the broker is, as in `queue.servers_env`. */
  readonly servers: string
  readonly key: string
  /** More of `queue`, in YAML, such as `max_events: 2`. */
  readonly queue?: string
  readonly lostAfter?: string
  readonly home?: Home
  readonly variables?: Readonly<Record<string, string>>
}

/** Starts a daemon that shares its queue with others over a broker. */
export const startMachine = async (options: MachineOptions): Promise<RunningDaemon> =>
  startDaemon(toDaemon(options))

/** The same under another program, out of reach of this process; resolves with what ends it. */
export const startMachineUnder = async (
  under: readonly string[],
  options: MachineOptions,
): Promise<{ readonly stop: () => Promise<void> }> => {
  const { home, variables } = toDaemon(options)
  const child = spawnDaemon(home ?? (await temporaryHome(toDaemon(options))), variables, under)
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  await untilListening(child, () => stderr)
  return {
    stop: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    },
  }
}

const toDaemon = ({
  role,
  servers,
  key,
  queue = '',
  lostAfter = '1m',
  gateway = '',
  variables,
  ...more
}: MachineOptions) => ({
  ...more,
  gateway: `
queue:
  engine: nats
  role: ${role}
  servers_env: NATS_URL
  key_env: DOORWARD_QUEUE_KEY
  lost_after: ${lostAfter}
${queue.replaceAll(/^(?=.)/gm, '  ')}
oauth: { callback_port: 0 }
${gateway}`,
  variables: { NATS_URL: servers, DOORWARD_QUEUE_KEY: key, ...variables },
})

/** Which of these texts are in the memory of a process that this one started. */
export const textsInMemory = async (
  pid: number | undefined,
  texts: readonly string[],
): Promise<readonly string[]> => {
  const found = new Set<string>()
  const memory = await open(`/proc/${pid}/mem`)
  try {
    for (const line of (await readFile(`/proc/${pid}/maps`, 'utf8')).split('\n')) {
      const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
      const start = Number.parseInt(from, 16)
      const length = Number.parseInt(to, 16) - start
      if (!(length > 0 && length < 2 ** 30)) continue
      const bytes = Buffer.alloc(length)
      const read = await memory.read(bytes, 0, length, start).catch(() => undefined)
      const part = bytes.subarray(0, read?.bytesRead ?? 0)
      for (const text of texts)
        if (part.includes(text) || part.includes(Buffer.from(text, 'utf16le'))) found.add(text)
    }
  } finally {
    await memory.close()
  }
  return [...found]
}
