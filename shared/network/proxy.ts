import { BlockList, isIP } from 'node:net'
import { isLoopbackUrl } from '../net.ts'
import { bareHost } from '../net.ts'

/** The proxy for a URL, from the variables that curl, git and npm read too. */
export type Proxy = {
  /** The URL with user and password: never shown. */
  readonly url: URL
  /** Host and port, for messages. */
  readonly place: string
  /** The variable that names it. */
  readonly variable: string
}

/** A variable that names no HTTP proxy. */
export type UnusableProxy = { readonly variable: string; readonly isUnusable: true }

/**
 * The proxy for a URL: `HTTPS_PROXY` for https and mail, `HTTP_PROXY` for http, in either case. Undefined
 * for this machine, for hosts in `NO_PROXY`, and without a variable.
 */
export const findProxy = (url: URL, env: NodeJS.ProcessEnv): Proxy | UnusableProxy | undefined => {
  if (isLocal(url) || isExcepted(url, readVariable('NO_PROXY', env)?.value ?? '')) return undefined
  return readProxy(url.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY', env)
}

/** The proxy that a variable names, for any host. */
export const readProxy = (
  name: 'HTTP_PROXY' | 'HTTPS_PROXY',
  env: NodeJS.ProcessEnv,
): Proxy | UnusableProxy | undefined => {
  const found = readVariable(name, env)
  if (!found) return undefined
  const { name: variable, value } = found
  const text = value.includes('://') ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '' || !isDecodable(url))
    return { variable, isUnusable: true }
  return { url, variable, place: `${url.hostname}:${getPort(url)}` }
}

/** A variable in lower or upper case, as curl reads them; white space is as good as unset. */
export const readVariable = (
  name: string,
  env: NodeJS.ProcessEnv,
): { readonly name: string; readonly value: string } | undefined => {
  for (const spelling of [name.toLowerCase(), name]) {
    const value = Object.hasOwn(env, spelling) ? env[spelling]?.trim() : undefined
    if (value) return { name: spelling, value }
  }
  return undefined
}

const isDecodable = ({ username, password }: URL): boolean => {
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

/** A proxy elsewhere cannot reach this machine by these names. */
const isLocal = ({ hostname }: URL): boolean =>
  isLoopbackUrl(`http://${hostname}`) || hostname === '0.0.0.0' || hostname.endsWith('.localhost')

/**
 * True for a URL that `NO_PROXY` names: `*`, a domain with its subdomains (`corp.example`, `.corp.example`,
 * `*.corp.example`), an address (`10.0.0.1`, `::1`, `[::1]`), a network (`10.0.0.0/8`), `10.1.*`; each may
 * have a port.
 */
const isExcepted = (url: URL, list: string): boolean => {
  const host = bareHost(url.hostname).replace(/\.$/, '')
  const port = getPort(url)
  return list
    .toLowerCase()
    .split(/[,\s]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      // More than one colon without brackets is an IPv6 address.
      const [, name = entry, itsPort] = /^(\[.*\]|[^:]*):(\d+)$/.exec(entry) ?? []
      return (itsPort === undefined || itsPort === port) && matches(host, bareHost(name))
    })
}

/** The port of a URL, also where it is the default of its scheme. */
export const getPort = ({ port, protocol }: URL): string =>
  port || (protocol === 'https:' ? '443' : '80')

const matches = (host: string, entry: string): boolean => {
  if (entry === '*') return true
  const family = toFamily(host)
  const [address = '', prefix] = entry.split('/')
  if (family && toFamily(address) === family) {
    const list = new BlockList()
    const bits = prefix === undefined ? Number.NaN : Number(prefix)
    if (prefix === undefined) list.addAddress(address, family)
    else if (bits >= 0 && bits <= (family === 'ipv4' ? 32 : 128))
      list.addSubnet(address, bits, family)
    return list.check(host, family)
  }
  const domain = entry.replace(/^\*?\./, '').replace(/\.$/, '')
  const pattern = domain.replaceAll(/[^a-z0-9*]/g, String.raw`\$&`).replaceAll('*', '.*')
  // The end of an address is not a domain.
  return new RegExp(family ? `^${pattern}$` : `(^|\\.)${pattern}$`).test(host)
}

const toFamily = (address: string): 'ipv4' | 'ipv6' | undefined => {
  const version = isIP(address)
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6'
}
