import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

type Call = {
  readonly method: string
  readonly body: Record<string, unknown>
  readonly token: string | undefined
  readonly answer: object
}

type Sent = { readonly type: string; readonly payload: unknown }

/**
 * Slack as apps of Socket Mode meet it: apps.connections.open, sockets with hello, envelopes that go to any one open
 * socket and come again without an acknowledgement, and the few methods that answers and approvals use. The official
 * clients talk to it in `official-clients.test.ts`.
 */
export class SlackServer {
  readonly #http = createServer((request, response) => void this.#answer(request, response))
  readonly #wss = new WebSocketServer({ noServer: true })
  readonly #sockets = new Set<WebSocket>()
  readonly #changed = new EventEmitter().setMaxListeners(0)
  readonly calls: Call[] = []
  /** Acknowledged envelopes, in order. */
  readonly acknowledged: string[] = []
  /** What apps.connections.open answers next; the last one stays. */
  opens: (object | undefined)[] = []
  /** How many sockets of other programs hello tells. */
  others = 0
  /** Sockets say nothing, and hear nothing. */
  isMute = false
  /** How long an acknowledgement may take. */
  patienceMs = 3000
  /** A socket is closed as soon as it said hello. */
  closesAtOnce = false
  /** The messages that are there, by channel and `ts`. */
  readonly messages = new Map<string, string>()
  /** The error that a method answers with. */
  readonly refusals = new Map<string, string>()
  #number = 0
  #greeted = 0
  url = ''

  static async start(): Promise<SlackServer> {
    const server = new SlackServer()
    server.#http.on('upgrade', (request, socket, head) =>
      server.#wss.handleUpgrade(request, socket, head, (ws) => server.#greet(ws)),
    )
    server.#http.listen(0, '127.0.0.1')
    await once(server.#http, 'listening')
    server.url = `http://127.0.0.1:${(server.#http.address() as AddressInfo).port}/api`
    return server
  }

  async close(): Promise<void> {
    for (const ws of this.#wss.clients) ws.terminate()
    this.#http.closeAllConnections()
    this.#http.close()
    await once(this.#http, 'close')
  }

  get open(): number {
    return this.#sockets.size
  }

  /** Resolves when there are so many sockets that said hello. */
  async untilOpen(count = 1): Promise<void> {
    while (this.#sockets.size !== count) await once(this.#changed, 'sockets')
  }

  /** Resolves when so many sockets have said hello, closed ones included. */
  async untilGreeted(count: number): Promise<void> {
    while (this.#greeted < count) await once(this.#changed, 'sockets')
  }

  get greeted(): number {
    return this.#greeted
  }

  async untilCalled(method: string, count = 1): Promise<Call> {
    for (;;) {
      const found = this.calls.filter((call) => call.method === method)
      const call = found[count - 1]
      if (call) return call
      await once(this.#changed, 'called')
    }
  }

  countCalls(method: string): number {
    return this.calls.filter((call) => call.method === method).length
  }

  #greet(ws: WebSocket): void {
    ws.setMaxListeners(0)
    ws.on('error', () => undefined)
    if (this.isMute) return
    this.#sockets.add(ws)
    this.#greeted += 1
    ws.on('close', () => {
      this.#sockets.delete(ws)
      this.#changed.emit('sockets')
    })
    ws.on('message', (data: Buffer) => {
      const { envelope_id: id } = JSON.parse(data.toString()) as { envelope_id?: string }
      if (id === undefined) return
      this.acknowledged.push(id)
      this.#changed.emit(`ack ${id}`)
    })
    ws.send(
      JSON.stringify({
        type: 'hello',
        num_connections: this.#sockets.size + this.others,
        connection_info: { app_id: 'A0APP' },
        debug_info: { host: 'applink-1', approximate_connection_time: 18060 },
      }),
    )
    this.#changed.emit('sockets')
    if (this.closesAtOnce) ws.close()
  }

  /**
   * Gives an envelope to any one socket, again to another one without an acknowledgement, and waits while there is
   * none. Resolves with the number of attempts.
   */
  async deliver({ type, payload }: Sent): Promise<number> {
    const id = `envelope-${(this.#number += 1)}`
    for (let attempt = 0; ; attempt += 1) {
      const sockets = [...this.#sockets].filter((ws) => ws.readyState === ws.OPEN)
      const ws = sockets[this.#number % Math.max(1, sockets.length)]
      if (!ws) {
        await once(this.#changed, 'sockets')
        attempt -= 1
        continue
      }
      const control = new AbortController()
      const acked = once(this.#changed, `ack ${id}`, { signal: control.signal }).then(
        () => true,
        () => false,
      )
      const timer = setTimeout(() => control.abort(), this.patienceMs)
      const lost = () => control.abort()
      ws.once('close', lost)
      ws.send(
        JSON.stringify({
          envelope_id: id,
          type,
          payload,
          accepts_response_payload: type !== 'events_api',
          ...(type === 'events_api' && {
            retry_attempt: attempt,
            retry_reason: attempt === 0 ? '' : 'timeout',
          }),
        }),
      )
      const isAcked = await acked
      clearTimeout(timer)
      ws.off('close', lost)
      if (isAcked) return attempt + 1
    }
  }

  /** As Slack ends a socket: it says so, and closes it later. */
  disconnect(reason: string, closes = true): void {
    for (const ws of this.#sockets) {
      ws.send(JSON.stringify({ type: 'disconnect', reason, debug_info: { host: 'applink-1' } }))
      if (closes) {
        const first = ws
        this.#changed.once('sockets', () => first.close())
      }
    }
  }

  /** The connection is gone on this side alone, as behind NAT. */
  cutSilently(): void {
    for (const ws of this.#sockets) {
      this.#sockets.delete(ws)
      ws.removeAllListeners('message')
      ws.pause()
    }
    this.#changed.emit('sockets')
  }

  terminateAll(): void {
    for (const ws of this.#sockets) ws.terminate()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const method = (request.url ?? '').replace(/^\/(api\/)?/, '').replace(/\?.*/s, '')
    const isJson = request.headers['content-type']?.includes('json') ?? false
    const body =
      isJson && text !== ''
        ? (JSON.parse(text) as Record<string, unknown>)
        : Object.fromEntries(new URLSearchParams(text))
    const token = request.headers.authorization?.replace('Bearer ', '')
    const answer = this.#result(method, body)
    this.calls.push({ method, body, token, answer })
    const status = 'status' in answer ? Number(answer.status) : 200
    response.writeHead(status, {
      'content-type': 'application/json',
      ...('retryAfter' in answer && { 'retry-after': String(answer.retryAfter) }),
    })
    response.end(JSON.stringify(answer))
    this.#changed.emit('called')
  }

  #result(method: string, body: Record<string, unknown>): object {
    if (method === 'apps.connections.open') {
      const next = this.opens.length > 1 ? this.opens.shift() : this.opens[0]
      return next ?? { ok: true, url: `${this.url.replace(/^http/, 'ws')}/link/?ticket=1` }
    }
    if (method === 'auth.test')
      return { ok: true, team_id: 'T0TEAM', user_id: 'U0BOT', bot_id: 'B0BOT' }
    const error = this.refusals.get(method)
    if (error !== undefined) return { ok: false, error }
    if (method === 'chat.postMessage') {
      const channel = toChannelId(String(body['channel']))
      const ts = `1795000000.${String((this.#number += 1)).padStart(6, '0')}`
      this.messages.set(`${channel} ${ts}`, String(body['markdown_text'] ?? body['text']))
      return { ok: true, channel, ts }
    }
    if (method === 'chat.update' || method === 'chat.delete') {
      // Unlike chat.postMessage these take ids alone.
      const [channel, ts] = [String(body['channel']), String(body['ts'])]
      const name = `${channel} ${ts}`
      if (!this.messages.has(name)) return { ok: false, error: 'message_not_found' }
      if (method === 'chat.delete') this.messages.delete(name)
      else this.messages.set(name, String(body['markdown_text'] ?? body['text']))
      return { ok: true, channel, ts }
    }
    return { ok: true }
  }
}

/** That of a channel, or of the direct messages with a person. */
const toChannelId = (named: string): string => {
  if (named.startsWith('#')) return 'C0CHANNEL'
  return /^[UW]/.test(named) ? `D${named.slice(1)}` : named
}

/** The body of an event, as Slack posts it and puts it into an envelope (docs.slack.dev/apis/events-api). */
export const slackEvent = (id: string, event: object): Sent => ({
  type: 'events_api',
  payload: {
    token: 'verification',
    team_id: 'T0TEAM',
    api_app_id: 'A0APP',
    event: { channel: 'C0CHANNEL', user: 'U0ADA', ts: '1795000000.000100', ...event },
    type: 'event_callback',
    event_id: id,
    event_time: 1795000000,
    authorizations: [{ team_id: 'T0TEAM', user_id: 'U0BOT', is_bot: true }],
  },
})
