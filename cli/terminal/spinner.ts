import { DoorwardError } from '../../shared/errors.ts'
import { ignoreSigusr1 } from '../../shared/runtime.ts'
import { clock } from './format.ts'
import { asciiText } from './output.ts'
import { cut } from './table.ts'
import type { Terminal } from './terminal.ts'

/** What a command waits for, as it is shown. */
export type Waiting = {
  /** Something else is waited for from now on; the time begins anew. */
  readonly now: (label: string) => void
  readonly stop: () => void
}

type WaitingOptions = {
  /** Takes the spinner away at once, whatever is still to be done. */
  readonly signal: AbortSignal
  /** What Ctrl-C does. */
  readonly interrupt: string
}

/**
 * Shows that a command waits, and since when: a spinner on a terminal, else one line (and none for what
 * is waited for afterwards).
 */
export const showWaiting = async (
  label: string,
  terminal: Terminal,
  { signal, interrupt }: WaitingOptions,
): Promise<Waiting> => {
  if (!terminal.isInteractive) {
    terminal.say(`${label} ...`)
    return { now: () => undefined, stop: () => undefined }
  }
  // The spinner looks for colour by itself, and knows nothing of --no-color.
  if (terminal.paintError('cyan', 'x') === 'x') process.env['NO_COLOR'] = '1'
  const { default: yoctoSpinner } = await import('yocto-spinner')
  let shown = label
  let startedAt = Date.now()
  const text = (): string => {
    const line = `${shown} (${clock(Date.now() - startedAt)}), Ctrl-C ${interrupt}`
    // The spinner itself takes two columns, and the ^C that the terminal shows two more.
    const columns = (process.stderr.columns || 80) - 5
    return terminal.isAscii ? asciiText(cut(line, columns - 2)) : cut(line, columns)
  }
  const spinner = yoctoSpinner({
    text: text(),
    // Signals are ours: the spinner would end the process before a login is cancelled.
    handleSignals: false,
    ...(terminal.isAscii && { spinner: { frames: ['-', '\\', '|', '/'], interval: 130 } }),
  })
  const timer = setInterval(() => (spinner.text = text()), 1000)
  const stop = () => {
    clearInterval(timer)
    spinner.stop()
  }
  if (!signal.aborted) spinner.start()
  signal.addEventListener('abort', stop, { once: true })
  return {
    now: (next) => {
      if (next === shown) return
      shown = next
      startedAt = Date.now()
      if (!signal.aborted) spinner.text = text()
    },
    stop: () => {
      signal.removeEventListener('abort', stop)
      stop()
    },
  }
}

/**
 * From now on Ctrl-C (and the end of the terminal) aborts this signal instead of ending the process,
 * so that a command can clean up. A second one ends the process at once. Who waits holds the API token
 * for long.
 */
export const interruptSignal = (): AbortSignal => holdInterrupt().signal

/** The same, until it is let go. */
export const holdInterrupt = (): { readonly signal: AbortSignal; readonly letGo: () => void } => {
  ignoreSigusr1()
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
