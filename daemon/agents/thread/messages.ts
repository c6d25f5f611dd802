import type { Ended } from '../run-process.ts'
import type { RunOptions } from '../noted-run.ts'

/*
 * What the daemon and its thread for programs tell each other. They are of one build, always: a thread
 * is made of what was read at the daemon's start.
 */

/** What the thread is made with. */
export type ThreadData = {
  /** The home's folder `run`, for notes of what runs. */
  readonly run: string
}

export type ToThread =
  | { readonly kind: 'run'; readonly id: number; readonly options: Omit<RunOptions, 'signal'> }
  | { readonly kind: 'stop'; readonly id: number; readonly reason: unknown }

export type FromThread =
  | { readonly kind: 'started'; readonly id: number; readonly pid: number }
  | { readonly kind: 'ended'; readonly id: number; readonly ended: Ended }
  /** It could not be started; `code` is that of the system error. */
  | {
      readonly kind: 'failed'
      readonly id: number
      readonly message: string
      readonly code: string | undefined
    }
