import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { connect } from '../../../shared/client/client.ts'
import type { Home } from '../../../shared/home/home.ts'
import { cleanEnvironment, cliMain } from '../../support/daemon/daemon.ts'

export type CliOptions = {
  readonly home?: Home
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly stdin?: string
  readonly cwd?: string
  /** In milliseconds. */
  readonly timeout?: number
  /** Programs that draw the whole screen need one; script(1) gives a terminal without a size. */
  readonly size?: { readonly columns: number; readonly rows: number }
  /** Leaves standard input open, for the test to write to. */
  readonly keepStdin?: boolean
}

export type CliResult = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The built command line as a child process; a daemon that it starts takes any free port. */
export const start = (args: readonly string[], options: CliOptions = {}): ChildProcess => {
  const child = spawn(process.execPath, [cliMain, ...args], {
    env: cleanEnvironment({
      DOORWARD_PORT: '0',
      DOORWARD_HOME: options.home?.root,
      ...options.env,
    }),
    cwd: options.cwd,
    stdio: ['pipe', 'pipe', 'pipe'],
    // A test that fails must not leave one behind that follows something for ever.
    timeout: 40_000,
    killSignal: 'SIGKILL',
  })
  child.stdin?.on('error', () => undefined)
  if (options.stdin !== undefined) child.stdin?.end(options.stdin)
  else if (!options.keepStdin) child.stdin?.end()
  return child
}

/** The built command line on a terminal of its own, by script(1) of util-linux. */
export const startOnTerminal = (command: string, options: CliOptions = {}): ChildProcess => {
  const { size } = options
  const sized = size ? `stty columns ${size.columns} rows ${size.rows}; ` : ''
  const line = `${sized}'${process.execPath}' '${cliMain}' ${command}`
  return spawn('script', ['-qec', line, '/dev/null'], {
    cwd: options.cwd,
    env: cleanEnvironment({ DOORWARD_HOME: options.home?.root, TERM: 'xterm', ...options.env }),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: options.timeout ?? 40_000,
    killSignal: 'SIGKILL',
  })
}

/** Whether `startOnTerminal` works here. Not every system brings that script(1); in CI Linux must. */
export const hasTerminal = (): boolean =>
  process.platform === 'linux' &&
  (Boolean(process.env['CI']) || !spawnSync('script', ['--version']).error)

/** Runs a command to its end. */
export const run = async (args: readonly string[], options: CliOptions = {}): Promise<CliResult> =>
  resultOf(start(args, options))

/** What a started command wrote, once it has ended. */
export const resultOf = async (child: ChildProcess): Promise<CliResult> => {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

/** What a stream has said since it was first waited for, and how much of that was waited for already. */
type Said = { text: string; passed: number; looks: Set<() => void> }

const saidBy = new WeakMap<object, Said>()

const listenTo = (stream: Readable): Said => {
  const known = saidBy.get(stream)
  if (known) return known
  const said: Said = { text: '', passed: 0, looks: new Set() }
  saidBy.set(stream, said)
  stream.setEncoding('utf8').on('data', (text: string) => {
    said.text += text
    for (const look of said.looks) look()
  })
  return said
}

/**
 * Waits until a stream of a started command has said this, after what was waited for before, and gives all
 * that it said since then.
 */
export const untilSaid = async (
  child: ChildProcess,
  from: 'stdout' | 'stderr',
  pattern: RegExp,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const stream = child[from]
    if (!stream) throw new Error(`its ${from} is not piped`)
    const said = listenTo(stream)
    const start = said.passed
    const look = () => {
      const text = said.text.slice(start)
      const match = pattern.exec(text)
      if (!match) return
      said.looks.delete(look)
      said.passed = Math.max(said.passed, start + match.index + match[0].length)
      resolve(text)
    }
    said.looks.add(look)
    look()
    child.once('close', () =>
      reject(new Error(`it ended and said only: ${said.text.slice(start)}`)),
    )
  })

/** Ends a daemon that a command has started in the background, if one runs. */
export const stopStarted = async (home: Home): Promise<void> => {
  await run(['daemon', 'stop', '--quiet'], { home })
}

/** Whether a daemon answers in this home. */
export const answers = async (home: Home): Promise<boolean> => {
  try {
    const client = await connect(home)
    client.close()
    return true
  } catch {
    return false
  }
}
