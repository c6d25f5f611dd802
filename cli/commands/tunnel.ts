import { once } from 'node:events'
import { createServer } from 'node:net'
import type { TunnelStatus } from '../../shared/api/tunnel.ts'
import { setServer } from '../../shared/set-server.ts'
import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import { withConfigLock } from '../../shared/home/lock.ts'
import { toPlainLine } from '../../shared/text.ts'
import { openConfig } from '../../shared/config-edit/open-config.ts'
import type { Context } from '../context.ts'
import { findDaemon } from '../daemon-client/connect.ts'
import { withDaemon } from '../daemon-client/ensure.ts'
import { moment } from '../terminal/format.ts'
import { showWaiting } from '../terminal/spinner.ts'
import { tableLines } from '../terminal/table.ts'
import { asInvoked } from '../terminal/terminal.ts'

const route = '/daemon/tunnel'
/** The program, its address, the first pings and the hooks. */
const startMs = 180_000
const restartMs = 90_000

/** Starts, stops or shows the tunnel. Throws `tunnel-failed`, `tunnel-down`, `config-invalid`. */
export const tunnel = async (
  context: Context,
  [action]: readonly string[],
  options: { readonly with?: string },
): Promise<void> => {
  const { terminal } = context
  if (action !== 'start' && options.with !== undefined)
    throw new DoorwardError('usage', `tunnel ${action} takes no --with`)
  if (action === 'stop') return stop(context)
  const status = action === 'start' ? await start(context, options) : await show(context)
  if (terminal.json) terminal.printJson(status)
  else for (const line of describe(status)) terminal.print(line)
  const [problem] = status.problems
  if (!problem) return
  throw new DoorwardError(problem.code as ErrorCode, toPlainLine(problem.detail), {
    hint: toPlainLine(problem.hint),
  })
}

const stop = async (context: Context): Promise<void> => {
  const { terminal } = context
  const [{ program, url }, status] = await withDaemon(context, async (client) => [
    await client.get<TunnelStatus>(route),
    await client.delete<TunnelStatus>(route),
  ])
  if (terminal.json) return terminal.printJson(status)
  terminal.print(program === undefined ? 'no tunnel was open' : `closed the tunnel of ${program}`)
  if (url !== undefined)
    terminal.say(`server.public_url and the hooks keep ${toPlainLine(url)}: doorward tunnel`)
}

const start = async (
  context: Context,
  options: { readonly with?: string },
): Promise<TunnelStatus> => {
  const { terminal } = context
  const before = (await openConfig(context.home)).config.gateway.server.public_url
  const post = async () =>
    withDaemon(context, (client) =>
      client.post<TunnelStatus>(route, options, { timeoutMs: startMs }),
    )
  const { leadsTo } = await withDaemon(context, (client) => client.get<TunnelStatus>(route))
  if (leadsTo === null) {
    // First, as nothing is changed where there is no program.
    await post().catch((error: unknown) => {
      if (!(error instanceof DoorwardError) || error.code !== 'config-invalid') throw error
    })
    await openPort(context)
  }
  const waiting = await showWaiting('opening the tunnel', terminal, {
    signal: new AbortController().signal,
    interrupt: 'leaves; the tunnel goes on',
  })
  try {
    const status = await post()
    if (before !== undefined && status.url !== undefined && !before.startsWith(status.url))
      terminal.say(`server.public_url was ${before}`)
    return status
  } finally {
    waiting.stop()
  }
}

/** The port for webhooks alone: chooses one where none is set, and has the daemon listen there. */
const openPort = async ({ home, terminal, ...context }: Context): Promise<void> => {
  await withConfigLock(home, async () => {
    const opened = await openConfig(home)
    const { port, host, public_port: known } = opened.config.gateway.server
    if (known !== undefined) return
    const chosen = port === 0 ? 0 : await orAnyPort(host, port + 1)
    const text = setServer(opened.file('gateway').text, { public_port: chosen })
    opened.check('gateway', text)
    await opened.write('gateway', text)
    terminal.say(`server.public_port is now ${chosen}: it serves webhooks and nothing else`)
  })
  await withDaemon({ home, terminal, ...context }, (client) =>
    client.post('/daemon/restart', undefined, { timeoutMs: restartMs }),
  )
  terminal.say('restarted the daemon, which listens there now')
}

/** 0, which takes any, where the port is in use. */
const orAnyPort = async (host: string, port: number): Promise<number> => {
  const server = createServer().listen({ host, port, exclusive: true })
  return once(server, 'listening')
    .then(
      () => port,
      () => 0,
    )
    .finally(() => server.close())
}

const show = async (context: Context): Promise<TunnelStatus> => {
  const client = await findDaemon(context)
  try {
    return await client.get<TunnelStatus>(route)
  } finally {
    client.close()
  }
}

const describe = ({ state, program, url, leadsTo, arrivedAt, moved }: TunnelStatus): string[] => {
  if (program === undefined) return [`no tunnel is open: ${asInvoked('doorward tunnel')}`]
  const ping =
    arrivedAt === undefined ? 'none has arrived' : `arrived ${moment(arrivedAt, new Date())}`
  return tableLines([
    ['tunnel', `${program}, ${state}`],
    ['address', url ?? '-'],
    ['leads to', leadsTo ?? '-'],
    ['ping', ping],
    ...(moved.length > 0 ? [['hooks', `moved to this address: ${moved.join(', ')}`]] : []),
  ])
}
