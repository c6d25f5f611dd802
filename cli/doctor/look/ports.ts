import { createServer } from 'node:net'
import { type Occupant, whoAnswers } from '../../../shared/client/client.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { systemCode } from '../../../shared/errors.ts'
import { type PortHolder, portHolder } from '../../../shared/client/discovery.ts'
import { within } from '../within.ts'

export type PortFacts = {
  readonly what: 'main' | 'public' | 'callback'
  /** The key of gateway.yaml. */
  readonly setting: string
  readonly port: number
  /** `held` by a process that listens there; the others say why nobody can. `any`: no port is named. */
  readonly is: 'any' | 'free' | 'held' | 'forbidden' | 'no-address' | 'unknown'
  readonly holder?: PortHolder
  readonly occupant?: Occupant
}

/** Looks whether each port that is configured is free, and who holds it. */
export const lookAtPorts = async ({ server, oauth, providers }: Gateway): Promise<PortFacts[]> => {
  const callbacks = Object.entries(providers).flatMap(([name, entry]) =>
    entry.callback_port === undefined
      ? []
      : [{ setting: `providers.${name}.callback_port`, port: entry.callback_port }],
  )
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
    ...[{ setting: 'oauth.callback_port', port: oauth.callback_port }, ...callbacks].map(
      (callback) => ({ what: 'callback', host: '127.0.0.1', ...callback }) as const,
    ),
  ] as const
  return Promise.all(
    wanted.map(async ({ host, ...port }) => ({ ...port, ...(await lookAtPort(host, port.port)) })),
  )
}

type Found = Pick<PortFacts, 'is' | 'holder' | 'occupant'>

const lookAtPort = async (host: string, port: number): Promise<Found> => {
  if (port === 0) return { is: 'any' }
  const code = await codeOfListening(host, port)
  if (code === undefined) return { is: 'free' }
  if (code === 'EACCES') return { is: 'forbidden' }
  if (code === 'EADDRNOTAVAIL') return { is: 'no-address' }
  if (code !== 'EADDRINUSE') return { is: 'unknown' }
  const [holder, occupant] = await Promise.all([
    within(1000, portHolder(port)),
    within(1500, whoAnswers(`http://${localOf(host)}:${port}`, undefined)),
  ])
  return {
    is: 'held',
    ...(holder !== 'late' && holder.value && { holder: holder.value }),
    ...(occupant !== 'late' && { occupant: occupant.value }),
  }
}

/** Listens for a moment: nothing else says for sure whether a daemon or a login could. */
const codeOfListening = async (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error) => resolve(systemCode(error) ?? 'unknown'))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

const localOf = (host: string): string => {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host.includes(':') ? '[::1]' : host
}
