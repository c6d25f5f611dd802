import { BlockList, isIP } from 'node:net'
import { bareHost } from '../net.ts'

/* Which addresses belong to this machine, to its network, and to the machine's metadata. */

const listOf = (...networks: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * Where clouds give a machine its credentials: link-local addresses (RFC 3927, RFC 4291), those of AWS in IPv6, of
 * Google in IPv6, of Alibaba, of Oracle, and of Azure's agent.
 */
const metadata = listOf(
  '169.254.0.0/16',
  '100.100.100.200/32',
  '192.0.0.192/32',
  '168.63.129.16/32',
  'fe80::/10',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
)
const loopback = listOf('127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128')
/** RFC 1918, RFC 6598, RFC 4193. */
const ofNetwork = listOf(
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
)

/** Names by which a proxy of a company could reach them in our place. */
const metadataNames = ['metadata.google.internal', 'metadata.goog', 'metadata', 'instance-data']

/** The eight groups of an IPv6 address. */
const toGroups = (address: string): number[] => {
  // A URL has the shortest form, in which no part is written as IPv4.
  const [head = '', tail] = bareHost(new URL(`http://[${address}]`).hostname).split('::')
  const read = (text: string) =>
    text === '' ? [] : text.split(':').map((one) => parseInt(one, 16))
  if (tail === undefined) return read(head)
  const [first, last] = [read(head), read(tail)]
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

const toIpv4 = (high = 0, low = 0): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/**
 * An address and the IPv4 addresses that it may stand for: mapped (RFC 4291 section 2.5.5), of NAT64 (RFC 6052,
 * RFC 8215) and of 6to4 (RFC 3056).
 */
const listForms = (address: string): string[] => {
  if (isIP(address) !== 6) return [address]
  const plain = address.split('%')[0] ?? ''
  const groups = toGroups(plain)
  const [first, second, third] = groups
  const last = toIpv4(groups[6], groups[7])
  const isZero = groups.slice(0, 5).every((group) => group === 0)
  if (isZero && (groups[5] === 0xffff || (groups[5] === 0 && (groups[6] ?? 0) > 0)))
    return [plain, last]
  if (first === 0x64 && second === 0xff9b) return [plain, last]
  if (first === 0x2002) return [plain, toIpv4(second, third)]
  return [plain]
}

const isIn = (list: BlockList, address: string): boolean =>
  listForms(address).some((form) => {
    const version = isIP(form)
    return version !== 0 && list.check(form, version === 6 ? 'ipv6' : 'ipv4')
  })

/** True for an address, or a well-known name, of the service that gives a machine its credentials. */
export const isMetadata = (host: string): boolean =>
  metadataNames.includes(host.toLowerCase()) || isIn(metadata, host)

/** How far an address is away. */
export const classifyAddress = (
  address: string,
): 'metadata' | 'loopback' | 'private' | 'public' => {
  if (isMetadata(address)) return 'metadata'
  if (isIn(loopback, address)) return 'loopback'
  return isIn(ofNetwork, address) ? 'private' : 'public'
}

/** True for a name or an address of this machine. */
export const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || isIn(loopback, host)
