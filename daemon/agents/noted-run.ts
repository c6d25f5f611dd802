import type { NoteRun } from './leftovers.ts'
import { markVariable } from './program-marked.ts'
import { type Ended, type ProcessOptions, runProcess } from './run-process.ts'

export type RunOptions = Omit<ProcessOptions, 'onStart'> & {
  /** A folder that is removed after it. */
  readonly folder: string | undefined
}

/** Runs a program as `runProcess` does, which says what it rejects with. */
export type RunProcess = (options: RunOptions) => Promise<Ended>

/** Runs programs with a note of each for as long as it runs; `started` is told their numbers. */
export const noteAndRun =
  (noteRun: NoteRun, started?: (pid: number) => void) =>
  async ({ folder, ...options }: RunOptions): Promise<Ended> => {
    const note = noteRun(folder)
    const env = { ...options.env, [markVariable]: note.mark }
    const onStart = (pid: number) => {
      note.started(pid)
      started?.(pid)
    }
    try {
      return await runProcess({ ...options, env, onStart })
    } finally {
      await note.forget()
    }
  }
