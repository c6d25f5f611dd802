import type { CliKind } from '../../../shared/agents/clis.ts'
import type { HostRule } from '../../../shared/agents/network.ts'
import type { NetworkMode } from '../../../shared/api/api.ts'
import { isLoopbackHost } from '../../../shared/network/addresses.ts'
import type { Listeners } from './listeners.ts'
import { findLocalPorts, findModelHosts } from './model-hosts.ts'
import { AgentProxy } from './proxy.ts'

/*
 * How the program of a sandbox reaches hosts: by the proxy of its run, whose URL it has in its variables. Ports of this
 * machine that its owner names are also there under their own number, whatever their protocol.
 */

/** A port in the network of a sandbox, where every one is free. */
const proxyPort = 3128
const maxLocalPorts = 20

/** Without rights a program in a network of its own cannot listen below. */
const firstFreePort = 1024

export type WayOut = {
  /** Ports of loopback that it may connect to; none without a network. */
  readonly ports: readonly number[]
  readonly variables: Readonly<Record<string, string>>
  readonly listeners?: Listeners
  /** Hosts and ports that were refused. */
  readonly refused: () => readonly string[]
  readonly close: () => void
}

const none: WayOut = { ports: [], variables: {}, refused: () => [], close: () => undefined }

type Wish = {
  readonly network: NetworkMode
  readonly allow: readonly HostRule[]
  /** The program whose model it reaches. */
  readonly login?: CliKind | undefined
}

type Run = {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly own: Readonly<Record<string, string>>
  readonly folder: string
}

/** `sharesNetwork`: the sandbox has the loopback of this machine, so the proxy asks for a password. */
export const openWay = async (
  { network: mode, allow, login: kind }: Wish,
  { argv, env, own, folder }: Run,
  sharesNetwork: boolean,
): Promise<WayOut> => {
  if (mode === 'off') return none
  const model = kind === undefined ? [] : await findModelHosts({ kind, env, argv, folder })
  const rules = [...allow, ...model]
  const proxy = new AgentProxy({ mode, rules, env })
  const named = rules.flatMap(({ host, ports }) => (isLoopbackHost(host) ? ports : []))
  const words = mode === 'open' ? findLocalPorts([...argv, ...Object.values(own)]) : []
  const local = [...new Set([...named, ...words])]
    .filter((port) => port >= firstFreePort)
    .slice(0, maxLocalPorts)
  const ended = { refused: () => proxy.refused, close: () => proxy.close() }
  if (sharesNetwork) {
    const url = await proxy.listen()
    return { ports: [Number(url.port), ...local], variables: toVariables(url), ...ended }
  }
  const port = Array.from({ length: maxLocalPorts + 1 }, (_, index) => proxyPort + index).find(
    (one) => !local.includes(one),
  )
  const ports = [port ?? proxyPort, ...local]
  return {
    ports,
    variables: toVariables(new URL(`http://127.0.0.1:${port}`)),
    listeners: {
      ports,
      onListener: (at, listener) => proxy.accept(listener, at === port ? undefined : at),
    },
    ...ended,
  }
}

/** The variables of a proxy, in both cases; by the last Node's own fetch uses it too (22.21, 24.5). */
const toVariables = ({ href }: URL): Record<string, string> => {
  const url = href.replace(/\/$/, '')
  const named = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [
    name,
    url,
  ])
  return { ...Object.fromEntries(named), NO_PROXY: '', no_proxy: '', NODE_USE_ENV_PROXY: '1' }
}
