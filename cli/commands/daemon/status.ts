import type { Status } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { formatDuration } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { endingWords } from '../../terminal/format.ts'
import { exitUnreachable } from '../../exit-code.ts'
import { findRunningDaemon } from '../../daemon-client/connect.ts'
import { wrapped } from '../../terminal/wrap.ts'

/**
 * Reports whether the daemon runs, where, and whether it is stopping. Throws `daemon-foreign` when another
 * program answers, `daemon-unreachable` when it runs but its address is unknown.
 */
export const showDaemonStatus = async (context: Context): Promise<void> => {
  const { terminal } = context
  const client = await findRunningDaemon(context)
  if (!client) {
    process.exitCode = exitUnreachable
    if (terminal.json) terminal.printJson({ running: false })
    else {
      terminal.print('stopped')
      // Loaded only here: reading the configuration takes longer than all the rest.
      const { portTaken } = await import('./start.ts')
      terminal.say(`hint: ${(await portTaken(context.home)) ?? 'doorward daemon start'}`)
    }
    return
  }
  const { daemon } = client
  const ending = await describeShutdown(client).finally(client.close)
  if (terminal.json) {
    terminal.printJson({ running: true, ...daemon, ...(ending && { stopping: true }) })
    return
  }
  const since = Date.now() - Date.parse(daemon.startedAt)
  const running = `running: ${daemon.url} (pid ${daemon.pid}, version ${daemon.version}, for ${formatDuration(since)})`
  terminal.print(wrapped(running, terminal.columns))
  if (daemon.publicUrl) terminal.print(`public:  ${daemon.publicUrl}`)
  if (ending) terminal.print(`ending:  ${ending}`)
}

/** A busy daemon may not answer: then nothing is printed about a shutdown. */
const describeShutdown = async (client: Client): Promise<string | undefined> => {
  const status = client.get<Status>('/status', { timeoutMs: 3000 })
  return status.then(endingWords).catch(() => undefined)
}
