import { DoorwardError } from '../shared/errors.ts'
import { keepDebuggerShut } from '../shared/runtime.ts'

/**
 * From now on Ctrl-C (and the end of the terminal) aborts this signal instead of ending the process,
 * so that a command can clean up. A second one ends the process at once. Who waits holds the API token
 * for long.
 */
export const interruptSignal = (): AbortSignal => holdInterrupt().signal

/** The same, until it is let go. */
export const holdInterrupt = (): { readonly signal: AbortSignal; readonly letGo: () => void } => {
  keepDebuggerShut()
  const control = new AbortController()
  const interrupt = () => {
    // The prompt that follows must not stand behind the ^C that the terminal shows.
    if (process.stderr.isTTY) process.stderr.write('\n')
    control.abort(new DoorwardError('interrupted', 'interrupted'))
  }
  for (const name of names) process.once(name, interrupt)
  return {
    signal: control.signal,
    letGo: () => {
      for (const name of names) process.off(name, interrupt)
    },
  }
}

const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Waits so many milliseconds, or throws `interrupted` as soon as the signal is aborted. */
export const pause = async (ms: number, signal?: AbortSignal): Promise<void> => {
  if (signal?.aborted) throw new DoorwardError('interrupted', 'interrupted')
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(new DoorwardError('interrupted', 'interrupted'))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
