import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home.ts'
import { packageFolder, programThread } from '../../../shared/version.ts'
import type { RunOptions, RunProcess } from '../noted-run.ts'
import { type Ended, killGroup } from '../run-process.ts'
import { needFiles } from './need-files.ts'
import type { FromThread, ThreadData, ToThread } from './messages.ts'

export type ProgramThreadParts = {
  readonly home: Pick<Home, 'run'>
  /** The thread's program, which can load nothing but Node's own modules. */
  readonly text?: string
  /** How long no program may have run before the thread is ended: some 8 MB that nobody needs by then. */
  readonly idleMs?: number
}

/** Those of a thread with one program, and some. */
const threadFiles = 16

type Run = {
  readonly ended: (ended: Ended) => void
  readonly failed: (error: Error) => void
  pid?: number
}

/**
 * Runs programs from a thread of its own. Node starts a program with fork(2), which copies the map of all
 * memory and returns only when the program is there: 4 ms at 110 MB in which this thread would answer
 * nobody. The thread is made with the first program, and ended when none has run for five seconds. Should
 * it fail, the programs that it runs are ended, with that error, and the next gets a new one.
 */
export const createProgramThread = ({
  home,
  text = readFileSync(new URL(programThread, packageFolder), 'utf8'),
  idleMs = 5000,
}: ProgramThreadParts): RunProcess => {
  const workerData: ThreadData = { run: home.run }
  const runs = new Map<number, Run>()
  let lastId = 0
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined

  const make = (): Worker => {
    // Where there is no room for all of its files, Node loses those that it has opened by then.
    needFiles(threadFiles)
    // Nothing of our environment is needed there: each program is given its own.
    const made = new Worker(text, { eval: true, env: {}, execArgv: [], workerData })
    made.on('message', hear)
    let why: Error | undefined
    made.on('error', (error: Error) => (why = error))
    // By now it has said all that it had to say.
    made.on('exit', () => lose(made, why))
    return made
  }

  const hear = (message: FromThread): void => {
    const run = runs.get(message.id)
    if (!run) return
    if (message.kind === 'started') {
      run.pid = message.pid
      return
    }
    runs.delete(message.id)
    rest()
    if (message.kind === 'ended') return run.ended(withBuffers(message.ended))
    run.failed(Object.assign(new Error(message.message), { code: message.code }))
  }

  const lose = (lost: Worker, why: Error | undefined): void => {
    if (lost !== thread) return
    thread = undefined
    const orphans = [...runs.values()]
    runs.clear()
    for (const { pid, failed } of orphans) {
      if (pid !== undefined) killGroup(pid, 'SIGKILL')
      failed(pid === undefined ? notBegun(why) : broken(why))
    }
  }

  /** It keeps the process while a program runs, and only then. */
  const rest = (): void => {
    if (runs.size > 0) return
    thread?.unref()
    idle ??= setTimeout(() => {
      idle = undefined
      const ended = thread
      thread = undefined
      void ended?.terminate()
    }, idleMs).unref()
  }

  const use = (): Worker => {
    clearTimeout(idle)
    idle = undefined
    thread ??= make()
    thread.ref()
    return thread
  }

  return async ({ signal, ...options }: RunOptions): Promise<Ended> => {
    const id = ++lastId
    const worker = use()
    const tell = (message: ToThread) => worker.postMessage(message)
    const stop = () => tell({ kind: 'stop', id, reason: signal.reason })
    const running = new Promise<Ended>((ended, failed) => runs.set(id, { ended, failed }))
    tell({ kind: 'run', id, options })
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
    try {
      return await running
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

/** Node has a code of its own for a thread that cannot be begun, and that of the system in its words. */
const notBegun = (why: Error | undefined): Error => {
  const code = /\b(E[A-Z]{3,})$/.exec(why?.message ?? '')?.[1]
  return code === undefined ? broken(why) : Object.assign(new Error(code, { cause: why }), { code })
}

const broken = (why: Error | undefined): DoorwardError =>
  new DoorwardError('agent-failed', 'the thread that runs programs has failed', { cause: why })

/** Between threads a buffer becomes an array of bytes. */
const withBuffers = (ended: Ended): Ended => ({
  ...ended,
  stdout: Buffer.from(ended.stdout),
  stderr: Buffer.from(ended.stderr),
})
