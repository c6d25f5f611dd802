import { access } from 'node:fs/promises'
import { asTyped } from './as-typed.ts'
import type { Context } from './context.ts'
import { findRunningDaemon } from './find-daemon.ts'

const firstSteps = `
  doorward init            write the sample configuration and a secret
  doorward daemon start    start it
`

const nextSteps = `
  doorward daemon start    start it
  doorward doctor          what is wrong, and what mends it
`

/**
 * What stands alone: `doorward`. The status when the daemon runs, else a short help. Throws
 * `daemon-foreign` as every command does.
 */
export const welcome = async (context: Context): Promise<void> => {
  const { home, terminal } = context
  const running = await findRunningDaemon(context)
  if (running) {
    running.close()
    const { showStatus } = await import('./status.ts')
    return showStatus(context)
  }
  if (terminal.json) {
    terminal.printJson({ running: false })
    return
  }
  const isNew = await access(home.config).then(
    () => false,
    () => true,
  )
  terminal.print(
    asTyped(`Usage: doorward <command>

The daemon is not running${isNew ? ', and there is no home yet' : ''}.
${isNew ? firstSteps : nextSteps}
Then:
  doorward webhook list    where senders send to
  doorward oauth login     log in to google, github or slack
  doorward events          what came in and what became of it
  doorward                 everything on one screen

All commands: doorward --help`),
  )
}
