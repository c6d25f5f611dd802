import type { Reloaded } from '../../../shared/api.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findDaemon, findRunningDaemon } from '../../daemon-client/connect.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/**
 * Lets the running daemon read its configuration now. Throws `daemon-unreachable`, or `config-invalid`
 * with every problem; the daemon goes on as before then.
 */
export const reloadDaemon = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findDaemon(context)
  try {
    const reloaded = await client.post<Reloaded>('/daemon/reload')
    if (terminal.json) {
      terminal.printJson(reloaded)
      return
    }
    terminal.print(`reloaded: ${summarize(reloaded)}`)
    printWarnings(reloaded, terminal)
  } finally {
    client.close()
  }
}

/** A daemon that works with the new configuration, and what says so, with what it warns of. */
export type Taken = { readonly url: string; readonly tell: () => void }

/** The same after an edit, if a daemon runs; undefined when none does. */
export const reloadIfRunning = async (context: Context): Promise<Taken | undefined> => {
  const { terminal } = context
  const client = await findRunningDaemon(context)
  if (!client) return undefined
  try {
    const reloaded = await client.post<Reloaded>('/daemon/reload')
    return {
      url: client.daemon.url,
      tell: () => {
        terminal.say('the daemon has taken it')
        printWarnings(reloaded, terminal)
      },
    }
  } finally {
    client.close()
  }
}

const printWarnings = ({ problems }: Reloaded, terminal: Terminal): void => {
  for (const { detail, hint } of problems) {
    terminal.warn(`${terminal.paintError('yellow', 'warning:')} ${toPlainLine(detail)}`)
    terminal.say(`hint: ${toPlainLine(hint)}`)
  }
}

const summarize = ({ webhooks, agents }: Reloaded): string =>
  `${webhooks} ${webhooks === 1 ? 'webhook' : 'webhooks'}, ${agents} ${agents === 1 ? 'agent' : 'agents'}`
