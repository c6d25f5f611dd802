import { DoorwardError } from '../../shared/errors.ts'
import { ignoreSigusr1 } from '../../shared/runtime.ts'
import { clock } from './format.ts'
import { asciiText } from './output.ts'
import { cut } from '../../shared/text.ts'
import type { Terminal } from './terminal.ts'

/** The display of a command that waits. */
export type Waiting = {
  /** Changes the label and restarts the clock. */
  readonly now: (label: string) => void
  readonly stop: () => void
}

type WaitingOptions = {
  /** Removes the spinner immediately. */
  readonly signal: AbortSignal
  /** The effect of Ctrl-C, for the label. */
  readonly interrupt: string
}

/**
 * Shows that a command waits, and for how long: a spinner on a terminal, else one line for the first label.
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
  // The spinner does not know --no-color, only NO_COLOR.
  if (terminal.paintError('cyan', 'x') === 'x') process.env['NO_COLOR'] = '1'
  const { default: yoctoSpinner } = await import('yocto-spinner')
  let shown = label
  let startedAt = Date.now()
  const text = (): string => {
    const line = `${shown} (${clock(Date.now() - startedAt)}), Ctrl-C ${interrupt}`
    // Two columns for the spinner, and two for the ^C that the terminal echoes.
    const columns = (process.stderr.columns || 80) - 5
    return terminal.isAscii ? asciiText(cut(line, columns - 2)) : cut(line, columns)
  }
  const spinner = yoctoSpinner({
    text: text(),
    // The spinner's own handler would exit before a login is cancelled.
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
 * From now on Ctrl-C (or a closed terminal) aborts this signal instead of ending the process, so that a
 * command can clean up. A second one exits immediately. Ignores SIGUSR1, as the process has the API token.
 */
export const interruptSignal = (): AbortSignal => holdInterrupt().signal

/** The same, until it is released. */
export const holdInterrupt = (): { readonly signal: AbortSignal; readonly letGo: () => void } => {
  ignoreSigusr1()
  const control = new AbortController()
  const interrupt = () => {
    // Starts a new line after the ^C that the terminal echoes.
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

/** Waits `ms` milliseconds, or throws `interrupted` once the signal is aborted. */
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
