import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type RunningDaemon, startDaemon } from './daemon.ts'
import { temporaryFolder } from '../temporary.ts'

/** How many of each sort are alive in the daemon, after the garbage collector ran; sizes in bytes. */
export type Census = {
  readonly sockets: number
  readonly servers: number
  readonly requests: number
  readonly incoming: number
  readonly responses: number
  readonly children: number
  readonly signals: number
  readonly timers: number
  readonly heapUsed: number
  readonly rss: number
  readonly resources: readonly string[]
}

export type ProbedDaemon = RunningDaemon & {
  readonly census: () => Promise<Census>
  /** Sets the daemon's clock of the wall by so much, back when it is less than 0. */
  readonly shiftClock: (ms: number) => Promise<void>
}

const probe = fileURLToPath(new URL('../../../../test/fixtures/daemon-probe.mjs', import.meta.url))

/**
 * A daemon with a probe in its process (`test/fixtures/daemon-probe.mjs`). With a pace its time runs so much
 * faster: its timers, its clocks, and so its time limits.
 */
export const startProbedDaemon = async ({
  pace = 1,
  ...options
}: Parameters<typeof startDaemon>[0] & { readonly pace?: number }): Promise<ProbedDaemon> => {
  const path = join(await temporaryFolder(), 'probe')
  const daemon = await startDaemon({
    ...options,
    variables: {
      ...options.variables,
      NODE_OPTIONS: `--import=${pathToFileURL(probe).href}`,
      DAEMON_PROBE: path,
      DAEMON_PROBE_PACE: String(pace),
    },
  })
  const ask = async <Answer>(question: object): Promise<Answer> => {
    const socket = connect(path)
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.write(`${JSON.stringify(question)}\n`)
    await once(socket, 'end')
    return JSON.parse(text) as Answer
  }
  return {
    ...daemon,
    census: () => ask<Census>({ command: 'census' }),
    shiftClock: async (ms) => void (await ask({ command: 'shift', ms })),
  }
}
