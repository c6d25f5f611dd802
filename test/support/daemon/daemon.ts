import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import { type Client, connect } from '../../../shared/client/client.ts'
import type { Home } from '../../../shared/home/home.ts'
import type { StartMessage } from '../../../shared/client/spawn.ts'
import { cliProgram, daemonProgram, packageFolder } from '../../../shared/version.ts'
import { type HomeFiles, temporaryHome } from '../temporary.ts'

/** The built programs themselves, run as users run them. */
export const cliMain = fileURLToPath(new URL(cliProgram, packageFolder))
export const daemonMain = fileURLToPath(new URL(daemonProgram, packageFolder))

export type RunningDaemon = {
  readonly home: Home
  readonly url: string
  readonly apiToken: string
  readonly client: Client
  readonly process: ChildProcess
  /** What it wrote to standard output and standard error so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  /** SIGTERM, then the exit code once it has ended. */
  readonly stop: () => Promise<number | null>
}

const running = new Set<ChildProcess>()

/** Only what a program needs to start; the variables of the test run are not passed on. */
export const cleanEnvironment = (
  more: Readonly<Record<string, string | undefined>> = {},
): Record<string, string> => {
  const names = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'SystemRoot', 'NODE_V8_COVERAGE']
  const kept = Object.fromEntries(names.map((name) => [name, process.env[name]]))
  return Object.fromEntries(
    Object.entries({ ...kept, ...more }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    ),
  )
}

/** Starts the built daemon as a child process on a free port and waits until it answers. */
export const startDaemon = async (
  options: HomeFiles & {
    readonly home?: Home
    readonly variables?: Readonly<Record<string, string>>
    /** A program with its arguments that becomes the daemon, such as `prlimit`. */
    readonly under?: readonly string[]
  } = {},
): Promise<RunningDaemon> => {
  const home = options.home ?? (await temporaryHome(options))
  const child = spawnDaemon(home, options.variables, options.under)
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  await untilListening(child, () => stderr)
  const client = await connect(home)
  const { readSecretFile } = await import('../../../shared/home/home.ts')
  return {
    home,
    url: client.daemon.url,
    apiToken: (await readSecretFile(home.apiToken))?.trim() ?? '',
    client,
    process: child,
    stdout: () => stdout,
    stderr: () => stderr,
    stop: async () => {
      client.close()
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    },
  }
}

/** The bare child process, for tests of a start that fails. */
export const spawnDaemon = (
  home: Home,
  variables: Readonly<Record<string, string>> = {},
  under: readonly string[] = [],
): ChildProcess => {
  const [file, ...args] = [...under, process.execPath, daemonMain, '--home', home.root]
  const child = spawn(file, args, {
    env: cleanEnvironment({ DOORWARD_PORT: '0', ...variables }),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** The daemon tells a parent with a channel when it listens; there is nothing to poll. */
export const untilListening = async (child: ChildProcess, stderr: () => string): Promise<void> => {
  await new Promise<void>((resolve, reject) => {
    child.once('message', (message: StartMessage) => {
      // One that cannot start says why, and ends.
      if ('url' in message) resolve()
    })
    child.once('exit', (code, signal) =>
      reject(new Error(`the daemon ended with ${code ?? signal} before it listened: ${stderr()}`)),
    )
  })
  child.disconnect()
}

/** Follows the event stream until an event of this id has reached one of its final states. */
export const untilFinished = async (
  daemon: Pick<RunningDaemon, 'client'>,
  id: string,
): Promise<EventDetail> => {
  const final = new Set([
    'done',
    'failed',
    'dropped',
    'filtered',
    'rejected',
    'duplicate',
    'declined',
    'expired',
  ])
  const control = new AbortController()
  const stream = await daemon.client.open('/events/stream', { signal: control.signal })
  try {
    const now = await daemon.client.get<EventDetail>(`/events/${id}`)
    if (final.has(now.state)) return now
    let text = ''
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      text += chunk.toString()
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        if (!line.startsWith('data:')) continue
        const record = JSON.parse(line.slice(5)) as EventRecord
        if (record?.id === id && final.has(record.state))
          return await daemon.client.get(`/events/${id}`)
      }
    }
    throw new Error('the event stream ended early')
  } finally {
    control.abort()
  }
}

/** Ends what a failed test left running; called once by the root hook. */
export const killDaemons = (): void => {
  for (const child of running) child.kill('SIGKILL')
}
