import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import type { HostRule } from '../../../shared/agents/network.ts'
import type { NetworkMode } from '../../../shared/api/api.ts'
import { withDeadline } from '../../../shared/deadline.ts'
import { classifyAddress, isLoopbackHost, isMetadata } from '../../../shared/network/addresses.ts'
import { openTunnel } from '../../../shared/network/outgoing.ts'
import { findProxy } from '../../../shared/network/proxy.ts'

/** The hosts that a run may reach. */
export type Reach = {
  readonly mode: Exclude<NetworkMode, 'off'>
  /** The hosts of its model, and those of its owner. */
  readonly rules: readonly HostRule[]
  /** Variables of the agent: its own way out may lead through a proxy. */
  readonly env: NodeJS.ProcessEnv
  /** By default that of the system. */
  readonly resolve?: Resolve
}

type Address = { readonly address: string; readonly family: number }
type Resolve = (host: string) => Promise<readonly Address[]>

const resolveAll: Resolve = async (host) => lookup(host, { all: true })

/** A host that a run may not reach. */
export class Refused extends Error {}

const connectMs = 30_000

/** The first rule for this host and port; undefined when none allows it. */
const findRule = (rules: readonly HostRule[], host: string, port: number): HostRule | undefined =>
  rules.find(
    ({ host: known, isDomain, ports }) =>
      ports.includes(port) && (isDomain ? host.endsWith(`.${known}`) : host === known),
  )

/**
 * Connects to a host that the run may reach, through the proxy of its variables where they name one. Throws
 * `Refused`, `ProxyError`, or the error of the system. Addresses are checked after the name is resolved: a name
 * of the list may lead to this machine.
 */
export const dial = async (
  { mode, rules, env, resolve = resolveAll }: Reach,
  host: string,
  port: number,
): Promise<Socket> => {
  const rule = mode === 'model' ? findRule(rules, host, port) : undefined
  if (isMetadata(host) || (mode === 'model' && !rule)) throw new Refused(host)
  const url = new URL(
    `${port === 80 ? 'http' : 'https'}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
  )
  if (findProxy(url, env)) {
    const tunnel = await openTunnel(url, connectMs, undefined, env)
    if (tunnel) return tunnel
  }
  const found = await resolve(host)
  const allowed = found.filter(({ address }) => mayReach(address, host, rule))
  if (allowed.length === 0) throw new Refused(host)
  return connectTo(allowed, host, port)
}

/** An address of this machine needs a host that says so, one of its network a host that is written in full. */
const mayReach = (address: string, host: string, rule: HostRule | undefined): boolean => {
  switch (classifyAddress(address)) {
    case 'metadata':
      return false
    case 'loopback':
      return !rule || isLoopbackHost(host)
    case 'private':
      return !rule?.isDomain
    default:
      return true
  }
}

const connectTo = async (
  addresses: readonly Address[],
  host: string,
  port: number,
): Promise<Socket> => {
  const socket = connect({
    host,
    port,
    autoSelectFamily: true,
    // Not resolved again: the second answer could be another.
    lookup: (_, { all }, callback) => {
      const [first] = addresses
      if (all) callback(null, [...addresses])
      else callback(null, first?.address ?? '', first?.family)
    },
  })
  const connected = new Promise<Socket>((resolve, reject) => {
    socket.once('connect', () => resolve(socket)).once('error', reject)
  })
  return withDeadline(connectMs, connected, () => {
    socket.destroy()
    throw new Error('no connection in time')
  })
}
