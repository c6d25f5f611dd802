import type { Reloaded } from '../shared/api.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { findDaemon, findRunningDaemon } from './find-daemon.ts'
import type { Terminal } from './terminal.ts'

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
    terminal.print(`reloaded: ${summaryOf(reloaded)}`)
    warnOf(reloaded, terminal)
  } finally {
    client.close()
  }
}

/**
 * The same after an edit, if a daemon runs: says that it works with the new configuration, and gives its
 * address; undefined when none runs.
 */
export const reloadIfRunning = async (context: Context): Promise<string | undefined> => {
  const { terminal } = context
  const client = await findRunningDaemon(context)
  if (!client) return undefined
  try {
    const reloaded = await client.post<Reloaded>('/daemon/reload')
    terminal.say('the daemon has taken it')
    warnOf(reloaded, terminal)
    return client.daemon.url
  } finally {
    client.close()
  }
}

const warnOf = ({ problems }: Reloaded, terminal: Terminal): void => {
  for (const { detail, hint } of problems) {
    terminal.warn(`${terminal.paintError('yellow', 'warning:')} ${plainLine(detail)}`)
    terminal.say(`hint: ${plainLine(hint)}`)
  }
}

const summaryOf = ({ webhooks, agents }: Reloaded): string =>
  `${webhooks} ${webhooks === 1 ? 'webhook' : 'webhooks'}, ${agents} ${agents === 1 ? 'agent' : 'agents'}`
