import type { Reloaded } from '../../../shared/api/api.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findDaemon, findRunningDaemon } from '../../daemon-client/connect.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/**
 * Makes the running daemon reload its configuration. Throws `daemon-unreachable`, or `config-invalid` with
 * every problem; the daemon then keeps the old configuration.
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
    printWarnings(reloaded.problems, terminal)
  } finally {
    client.close()
  }
}

/** The daemon that loaded the new configuration, and a function that reports it with its warnings. */
export type Taken = { readonly url: string; readonly tell: () => void }

/** Reloads after an edit; undefined when no daemon runs. */
export const reloadIfRunning = async (context: Context): Promise<Taken | undefined> => {
  const { terminal } = context
  const client = await findRunningDaemon(context)
  if (!client) return undefined
  try {
    const reloaded = await client.post<Reloaded>('/daemon/reload')
    return {
      url: client.daemon.url,
      tell: () => {
        terminal.say('the daemon reloaded its configuration')
        printWarnings(reloaded.problems, terminal)
      },
    }
  } finally {
    client.close()
  }
}

export const printWarnings = (
  warnings: readonly { readonly detail: string; readonly hint: string }[],
  terminal: Terminal,
): void => {
  for (const { detail, hint } of warnings) {
    terminal.warn(`${terminal.paintError('yellow', 'warning:')} ${toPlainLine(detail)}`)
    terminal.say(`hint: ${toPlainLine(hint)}`)
  }
}

const summarize = ({ webhooks, agents }: Reloaded): string =>
  `${webhooks} ${webhooks === 1 ? 'webhook' : 'webhooks'}, ${agents} ${agents === 1 ? 'agent' : 'agents'}`
