import { createServer } from 'node:net'
import { type Listener, identifyListener } from '../../../shared/client/client.ts'
import { type ListeningProcess, findListeningProcess } from '../../../shared/client/discovery.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { systemCode } from '../../../shared/errors.ts'
import { type Check, checksFor, within } from '../../../shared/api/checks.ts'
import type { DaemonFacts } from './daemon.ts'

type PortFacts = {
  readonly what: 'main' | 'public' | 'callback'
  /** The key of gateway.yaml. */
  readonly setting: string
  readonly port: number
  /** `used` by a process that listens there; the others say why no process can. `any`: no port is named. */
  readonly is: 'any' | 'free' | 'used' | 'forbidden' | 'no-address' | 'unknown'
  readonly holder?: ListeningProcess
  readonly occupant?: Listener
}

/** Looks whether each port that is configured is free, and who holds it. */
export const collectPorts = async ({ server, oauth }: Gateway): Promise<PortFacts[]> => {
  const wanted = [
    { what: 'main', setting: 'server.port', port: server.port, host: server.host },
    ...(server.public_port === undefined
      ? []
      : [
          {
            what: 'public',
            setting: 'server.public_port',
            port: server.public_port,
            host: server.host,
          } as const,
        ]),
    {
      what: 'callback',
      setting: 'oauth.callback_port',
      port: oauth.callback_port,
      host: '127.0.0.1',
    },
  ] as const
  return Promise.all(
    wanted.map(async ({ host, ...port }) => ({ ...port, ...(await collectPort(host, port.port)) })),
  )
}

type Found = Pick<PortFacts, 'is' | 'holder' | 'occupant'>

const collectPort = async (host: string, port: number): Promise<Found> => {
  if (port === 0) return { is: 'any' }
  const code = await tryToListen(host, port)
  if (code === undefined) return { is: 'free' }
  if (code === 'EACCES') return { is: 'forbidden' }
  if (code === 'EADDRNOTAVAIL') return { is: 'no-address' }
  if (code !== 'EADDRINUSE') return { is: 'unknown' }
  const [holder, occupant] = await Promise.all([
    within(1000, findListeningProcess(port)),
    within(1500, identifyListener(`http://${toLocalHost(host)}:${port}`, undefined)),
  ])
  return {
    is: 'used',
    ...(holder !== 'late' && holder.value && { holder: holder.value }),
    ...(occupant !== 'late' && { occupant: occupant.value }),
  }
}

/** Listens for a moment: nothing else says for sure whether a daemon or a login could. */
const tryToListen = async (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error) => resolve(systemCode(error) ?? 'unknown'))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

const toLocalHost = (host: string): string => {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host.includes(':') ? '[::1]' : host
}

const { ok, warning, error, skipped } = checksFor('ports')

/** The daemon that runs; without `url` nothing tells where it listens. */
type Running = { readonly pid: number; readonly url?: string; readonly publicUrl?: string }

/** Checks whether the daemon and the logins have their ports. */
export const checkPorts = (
  ports: readonly PortFacts[] | undefined,
  { file, isAlive, unlistedPid }: Pick<DaemonFacts, 'file' | 'isAlive' | 'unlistedPid'>,
): Check[] => {
  if (!ports) return [skipped('ports', 'the configuration cannot be read')]
  const running = file ?? (unlistedPid === undefined ? undefined : { pid: unlistedPid })
  return ports.map((port) => checkPort(port, isAlive ? running : undefined))
}

const checkPort = (facts: PortFacts, daemon: Running | undefined): Check => {
  const { what, setting, port, is } = facts
  const name = setting.startsWith('providers.') ? setting : what
  const free = port < 65_535 ? port + 1 : port - 1
  switch (is) {
    case 'any':
      return skipped(name, `${setting} is 0: a free port is chosen`)
    case 'free':
      if (what === 'callback' || !daemon) return ok(name, `${port} is free`)
      return warning(
        name,
        `the daemon does not listen on ${port}, as configured${what === 'main' && daemon.url !== undefined ? `, but at ${daemon.url}` : ''}`,
        'doorward daemon restart',
      )
    case 'used':
      return checkUsed(facts, name, daemon)
    case 'forbidden':
      return error(
        name,
        `this user may not listen on port ${port}`,
        `choose one over 1023: ${setting} in gateway.yaml`,
      )
    case 'no-address':
      return error(
        name,
        'this machine does not have the address server.host',
        'set server.host to 127.0.0.1: doorward config edit gateway',
      )
    case 'unknown':
      return skipped(name, `it is unknown whether ${port} is free (try ${free})`)
  }
}

const checkUsed = (
  { what, setting, port, holder, occupant }: PortFacts,
  name: string,
  daemon: Running | undefined,
): Check => {
  const isAtPort = (url: string | undefined) =>
    url !== undefined && new URL(url).port === String(port)
  // It may have been started with another DOORWARD_PORT than ours.
  if (what === 'callback' && (isAtPort(daemon?.url) || isAtPort(daemon?.publicUrl)))
    return error(
      name,
      `${port} is the port of the daemon itself: logins cannot return there`,
      `choose another: ${setting} in gateway.yaml, and in the redirect URI at the provider`,
    )
  const isOurs =
    daemon !== undefined &&
    (holder?.pid === daemon.pid || (what === 'main' && isAtPort(daemon.url)))
  if (isOurs)
    return ok(
      name,
      what === 'callback'
        ? `${port} is open: a login waits there`
        : `the daemon listens on ${port}`,
    )
  const who = holder
    ? `${holder.name} (pid ${holder.pid})`
    : occupant === 'other-doorward'
      ? 'the daemon of another home'
      : 'an unknown program'
  const isDefault = port === 18_789 && occupant !== 'other-doorward'
  const free = port < 65_535 ? port + 1 : port - 1
  if (what === 'callback')
    return error(
      name,
      `${port} is in use by ${who}: logins cannot return there`,
      `stop that program, or set ${setting} in gateway.yaml and the redirect URI at the provider`,
    )
  return error(
    name,
    `${port} is in use by ${who}${isDefault ? '; other gateways have this default too' : ''}`,
    `stop it, or choose another port: ${setting}: ${free} in gateway.yaml`,
  )
}
