import { type Check, checksOf } from '../check.ts'
import type { PortFacts } from '../look/ports.ts'

const { ok, warning, error, skipped } = checksOf('ports')

/** The daemon that runs; without `url` nothing tells where it listens. */
type Running = { readonly pid: number; readonly url?: string; readonly publicUrl?: string }

/** Whether the daemon and the logins have their ports; `daemon` is the one that runs, if any. */
export const judgePorts = (ports: readonly PortFacts[], daemon: Running | undefined): Check[] =>
  ports.map((port) => judgePort(port, daemon))

const judgePort = (facts: PortFacts, daemon: Running | undefined): Check => {
  const { what, setting, port, is } = facts
  const name = setting.startsWith('providers.') ? setting : what
  const free = port < 65_535 ? port + 1 : port - 1
  switch (is) {
    case 'any':
      return skipped(name, `${setting} is 0: any free port is taken`)
    case 'free':
      if (what === 'callback' || !daemon) return ok(name, `${port} is free`)
      return warning(
        name,
        `the daemon does not listen on ${port}, as configured${what === 'main' && daemon.url !== undefined ? `, but at ${daemon.url}` : ''}`,
        'doorward daemon restart',
      )
    case 'held':
      return judgeHeld(facts, name, daemon)
    case 'forbidden':
      return error(
        name,
        `this user may not listen on port ${port}`,
        `choose one over 1023: ${setting} in gateway.yaml`,
      )
    case 'no-address':
      return error(
        name,
        'this machine has no address as server.host names it',
        'set server.host to 127.0.0.1: doorward config edit gateway',
      )
    case 'unknown':
      return skipped(name, `the system does not say whether ${port} is free (try ${free})`)
  }
}

const judgeHeld = (
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
      `${port} is the port of the daemon itself: no login can come back there`,
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
        : `${port} is held by the daemon`,
    )
  // A successor that takes over may be known by its port alone.
  const who = holder
    ? `${holder.name} (pid ${holder.pid})`
    : occupant === 'other-doorward'
      ? 'the daemon of another home'
      : 'a program of another user, or one that the system does not name'
  const isDefault = port === 18_789 && occupant !== 'other-doorward'
  const free = port < 65_535 ? port + 1 : port - 1
  if (what === 'callback')
    return error(
      name,
      `${port} is held by ${who}: no login can come back there`,
      `end that program, or set ${setting} in gateway.yaml and the redirect URI at the provider`,
    )
  return error(
    name,
    `${port} is held by ${who}${isDefault ? '; other gateways have this default too' : ''}`,
    `end it, or choose another port: ${setting}: ${free} in gateway.yaml`,
  )
}
