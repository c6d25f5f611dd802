import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import {
  challengeHeader,
  toEndpoint,
  proofHeader,
  computeProof,
} from '../../../shared/client/identity.ts'
import { version } from '../../../shared/version.ts'

/** A program that speaks like the daemon, and also says what no daemon would. */
export type FakeDaemon = {
  /** What `/status` answers; any value, so that garbage can be tried. */
  status: unknown
  readonly url: string
  /** Takes a request in place of the daemon, and then answers true; for answers that no daemon gives. */
  misbehave: ((path: string, response: ServerResponse) => boolean) | undefined
  /** How often this path was asked for with `GET`. */
  readonly asked: (path: string) => number
  /** Waits until it was asked for this often, or once more than now. */
  readonly untilAsked: (path: string, count?: number) => Promise<void>
  /** `POST` requests that came, as `/path`. */
  readonly posts: readonly string[]
  /** What they are answered; an empty object unless told. */
  readonly answers: Map<string, object>
  /** Sends one message to everyone who follows the stream. */
  readonly send: (event: unknown) => void
  /** Sends the heartbeat to them. */
  readonly beat: () => void
  /** Ends every connection and takes new ones. */
  readonly hangUp: () => void
  /** Ends without a goodbye, as after `kill -9`; `run/daemon.json` stays. */
  readonly die: () => Promise<void>
}

/** Starts one on a free port and writes the files by which a home's clients find it. */
export const startFakeDaemon = async (home: Home, status: unknown): Promise<FakeDaemon> => {
  const apiToken = randomBytes(32).toString('hex')
  const streams = new Set<ServerResponse>()
  const posts: string[] = []
  const gets: string[] = []
  const news = new EventEmitter()
  const asked = (path: string) => gets.filter((one) => one === path).length
  let messages = 0
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const json = (code: number, value: unknown) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      response.writeHead(code, { 'content-type': 'application/json' }).end(text)
    }
    if (request.method === 'GET') {
      gets.push(pathname)
      news.emit('get')
    }
    if (fake.misbehave?.(pathname, response)) return undefined
    if (pathname === '/health') {
      const challenge = String(request.headers[challengeHeader] ?? '')
      const { localAddress, localPort } = request.socket
      const place = toEndpoint(localAddress, localPort)
      response.setHeader(proofHeader, computeProof(apiToken, challenge, place))
      return json(200, { status: 'ok', name: 'doorward', version: '0.0.0' })
    }
    if (request.headers.authorization !== `Bearer ${apiToken}`) return json(401, {})
    if (request.method === 'POST') {
      posts.push(pathname)
      return json(202, fake.answers.get(pathname) ?? {})
    }
    if (pathname === '/status') return json(200, fake.status)
    if (pathname === '/events/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': hello\n\n')
      streams.add(response)
      response.once('close', () => streams.delete(response))
      return undefined
    }
    const known = (fake.status as Status).events?.find(({ id }) => pathname === `/events/${id}`)
    return known ? json(200, known) : json(404, {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A test that fails must not keep the run from ending.
  server.unref()
  server.on('connection', (socket) => socket.unref())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const fake: FakeDaemon = {
    status,
    url,
    misbehave: undefined,
    asked,
    untilAsked: async (path, count = asked(path) + 1) => {
      while (asked(path) < count) await once(news, 'get')
    },
    posts,
    hangUp: () => server.closeAllConnections(),
    answers: new Map(),
    send: (event) => {
      messages += 1
      for (const stream of streams)
        stream.write(`event: event\nid: ${messages}\ndata: ${JSON.stringify(event)}\n\n`)
    },
    beat: () => {
      for (const stream of streams) stream.write(':\n\n')
    },
    die: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
  await mkdir(home.run, { recursive: true, mode: 0o700 })
  await rm(home.apiToken, { force: true })
  await writeFile(home.apiToken, apiToken, { mode: 0o600 })
  const startedAt = new Date().toISOString()
  await writeFile(
    home.daemonJson,
    JSON.stringify({ pid: process.pid, url, version: '0.0.0', startedAt }),
  )
  return fake
}

/** A status with nothing in it but what is given. */
export const statusWith = (more: Partial<Status> = {}): Status => ({
  version,
  startedAt: '2026-01-02T03:04:05.000Z',
  url: 'http://127.0.0.1:18789',
  queue: { waiting: 0, running: 0, bytes: 0 },
  providers: [],
  tokens: [],
  webhooks: [],
  events: [],
  problems: [],
  ...more,
})

/** An event that has ended well, with what is given in place of the rest. */
export const eventWith = (more: Partial<EventRecord> = {}): EventRecord => ({
  id: 'evt_1',
  kind: 'webhook',
  webhook: '/github',
  receivedAt: '2026-01-02T12:04:00.000Z',
  state: 'done',
  agent: 'echo',
  attempts: 1,
  durations: {},
  targets: [],
  ...more,
})
