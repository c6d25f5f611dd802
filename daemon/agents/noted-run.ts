import { workAtEndOfTurn } from '../end-of-turn.ts'
import type { NoteRun } from './leftovers.ts'
import { oneInATurn } from './one-in-a-turn.ts'
import { markVariable } from './program-marked.ts'
import { type Ended, type ProcessOptions, runProcess } from './run-process.ts'

export type RunOptions = Omit<ProcessOptions, 'onStart'> & {
  /** A folder that is removed after it. */
  readonly folder: string | undefined
}

/** Runs a program as `runProcess` does, which says what it rejects with. */
export type RunProcess = (options: RunOptions) => Promise<Ended>

const neverStarted: Ended = {
  reason: 'stopped',
  exitCode: null,
  exitSignal: null,
  stdout: Buffer.alloc(0),
  cut: false,
  stderr: Buffer.alloc(0),
}

/**
 * Runs programs with a note of each for as long as it runs. Each of note, start and number is written or done in a
 * turn of the loop of its own, at its end: a start stops the daemon for milliseconds, and whoever has sent
 * something meanwhile is answered first. None is started that is to stop by the time its turn comes.
 */
export const noteAndRun = (noteRun: NoteRun): RunProcess => {
  const turn = oneInATurn()
  return async ({ folder, ...options }) => {
    await turn()
    if (options.signal.aborted) return neverStarted
    const note = noteRun(folder)
    const env = { ...options.env, [markVariable]: note.mark }
    let isOver = false
    const onStart = (pid: number) => workAtEndOfTurn(() => isOver || note.started(pid))
    try {
      await turn()
      return options.signal.aborted ? neverStarted : await runProcess({ ...options, env, onStart })
    } finally {
      isOver = true
      await note.forget()
    }
  }
}
