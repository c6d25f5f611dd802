import type { Status } from '../shared/api.ts'
import type { Context } from './context.ts'
import { findDaemon } from './find-daemon.ts'
import { statusLines } from './status-lines.ts'

/** One screen of everything. Looks, and starts nothing: throws `daemon-unreachable` when none runs. */
export const showStatus = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findDaemon(context)
  try {
    const status = await client.get<Status>('/status')
    if (terminal.json) {
      terminal.printJson(status)
      return
    }
    terminal.print(statusLines(status, new Date(), terminal).join('\n'))
  } finally {
    client.close()
  }
}
