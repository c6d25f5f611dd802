import { once } from 'node:events'
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
  createServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as a fake provider got it: all of it, so that a test can say what was really sent. */
export type ProviderRequest = {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The body read as a form. */
  readonly form: URLSearchParams
}

/** A text body is sent as it is, anything else as JSON. */
export type ProviderAnswer = {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** How the next requests go wrong. */
export type Fault = {
  /** How many requests; default 1. */
  readonly times?: number
  /** Only requests whose path begins so; default any. */
  readonly path?: string
  /** The answer instead of the real one; default 500. */
  readonly status?: number
  readonly retryAfterSeconds?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The request is carried out, but the connection breaks before the answer has come. */
  readonly isAnswerLost?: boolean
}

/** A request that is kept waiting. */
export type HeldRequest = {
  readonly arrived: Promise<ProviderRequest>
  /** Lets it be carried out and answered. */
  readonly release: () => void
}

export type ProviderServer = {
  readonly origin: string
  /** Every request, in the order in which they came. */
  readonly requests: ProviderRequest[]
  readonly fail: (fault?: Fault) => void
  /** Keeps the next request whose path begins so waiting until it is released. */
  readonly hold: (path: string) => HeldRequest
  readonly close: () => void
}

type Hold = { readonly path: string; readonly arrive: (request: ProviderRequest) => void }

/** A loopback server for a fake provider, with switches that make it fail, lose answers or wait. */
export const startProviderServer = async (
  handle: (request: ProviderRequest) => ProviderAnswer | undefined,
): Promise<ProviderServer> => {
  const requests: ProviderRequest[] = []
  const faults: { left: number; fault: Fault }[] = []
  const holds: (Hold & { readonly released: Promise<void> })[] = []

  const nextFault = ({ path }: ProviderRequest): Fault | undefined => {
    const next = faults.find(({ left, fault }) => left > 0 && path.startsWith(fault.path ?? '/'))
    if (next) next.left -= 1
    return next?.fault
  }

  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await readRequest(incoming)
    requests.push(request)
    const at = holds.findIndex(({ path }) => request.path.startsWith(path))
    const [held] = at < 0 ? [] : holds.splice(at, 1)
    held?.arrive(request)
    await held?.released
    const fault = nextFault(request)
    if (fault?.isAnswerLost) {
      handle(request)
      incoming.socket.destroy()
    } else if (fault) answer(response, answerOf(fault))
    else answer(response, handle(request) ?? { status: 404, body: { message: 'Not Found' } })
  }

  const server = createServer((incoming, response) => {
    // The other side may be gone before it is answered.
    serve(incoming, response).catch(() => incoming.socket.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail: (fault = {}) => void faults.push({ left: fault.times ?? 1, fault }),
    hold: (path) => {
      let release = (): void => undefined
      let arrive: Hold['arrive'] = () => undefined
      const released = new Promise<void>((resolve) => (release = resolve))
      const arrived = new Promise<ProviderRequest>((resolve) => (arrive = resolve))
      holds.push({ path, arrive, released })
      return { arrived, release }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A redirect of the browser; parameters that are undefined are left out. */
export const redirectTo = (
  address: string,
  parameters: Readonly<Record<string, string | undefined>>,
): ProviderAnswer => {
  const url = new URL(address)
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value)
  return { status: 302, headers: { location: url.href } }
}

/** The token of `Authorization: Bearer`. */
export const bearerOf = ({ headers }: ProviderRequest): string | undefined =>
  /^bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1]

/** User and password of `Authorization: Basic`. */
export const basicOf = ({ headers }: ProviderRequest): readonly [string, string] | undefined => {
  const encoded = /^basic (\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const [user = '', ...rest] = Buffer.from(encoded, 'base64').toString().split(':')
  return [user, rest.join(':')]
}

const readRequest = async (incoming: IncomingMessage): Promise<ProviderRequest> => {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = Buffer.concat(chunks).toString()
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://provider')
  return {
    method: incoming.method ?? '',
    path: pathname,
    query: searchParams,
    headers: incoming.headers,
    body,
    form: new URLSearchParams(body),
  }
}

const answerOf = ({ status = 500, retryAfterSeconds, headers, body = {} }: Fault) => ({
  status,
  body,
  headers: {
    ...(retryAfterSeconds !== undefined && { 'retry-after': `${retryAfterSeconds}` }),
    ...headers,
  },
})

const answer = (response: ServerResponse, { status, headers, body }: ProviderAnswer): void => {
  const isText = typeof body === 'string' || body === undefined
  response.writeHead(status, {
    ...(!isText && { 'content-type': 'application/json; charset=utf-8' }),
    ...headers,
  })
  response.end(isText ? body : JSON.stringify(body))
}
