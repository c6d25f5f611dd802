import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { bareHost } from '../../../shared/net.ts'
import { reasonOf } from './ask.ts'

const limitMs = 6000

/** Connects to where a URL leads, by TLS for https, and sends nothing. Why not, in words, or undefined. */
export const reachServer = async ({ protocol, hostname, port }: URL): Promise<string | undefined> =>
  new Promise((resolve) => {
    const isTls = protocol === 'https:'
    const host = bareHost(hostname)
    const where = { host, port: port === '' ? (isTls ? 443 : 80) : Number(port) }
    // A name for TLS is a name, never an address (RFC 6066 section 3).
    const isAddress = /^[\d.]+$/.test(host) || host.includes(':')
    const socket = isTls
      ? connectTls({ ...where, ...(isAddress ? {} : { servername: host }) })
      : connectPlain(where)
    const settle = (why: string | undefined) => {
      socket.destroy()
      resolve(why)
    }
    socket.setTimeout(limitMs, () => settle('it did not answer in time'))
    socket.once(isTls ? 'secureConnect' : 'connect', () => settle(undefined))
    socket.once('error', (error) => settle(reasonOf(error)))
  })
