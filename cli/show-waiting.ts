import { clock } from './clock.ts'
import { cut } from './table.ts'
import type { Terminal } from './terminal.ts'

/**
 * Shows that a command waits, and since when: a spinner on a terminal, else one line. What it returns
 * takes the spinner away.
 */
export const showWaiting = async (label: string, terminal: Terminal): Promise<() => void> => {
  if (!terminal.isInteractive) {
    terminal.say(`${label} ...`)
    return () => undefined
  }
  const { default: yoctoSpinner } = await import('yocto-spinner')
  const startedAt = Date.now()
  const text = (): string =>
    // The spinner itself takes two columns.
    cut(
      `${label} (${clock(Date.now() - startedAt)}), Ctrl-C cancels`,
      (process.stderr.columns || 80) - 2,
    )
  // Signals are ours: the spinner would end the process before the login is cancelled.
  const spinner = yoctoSpinner({ text: text(), handleSignals: false })
  spinner.start()
  const timer = setInterval(() => (spinner.text = text()), 1000)
  return () => {
    clearInterval(timer)
    spinner.stop()
  }
}
