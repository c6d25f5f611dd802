import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Call = {
  readonly method: string
  readonly body: Record<string, unknown>
  readonly result?: unknown
}
type Update = { readonly update_id: number } & Readonly<Record<string, unknown>>

/**
 * The Bot API of Telegram as far as updates and buttons need it: getUpdates waits, forgets what is below the offset,
 * and answers 409 to a second reader. The client of grammY talks to it in `telegram-source.test.ts`.
 */
export class TelegramServer {
  readonly #http = createServer((request, response) => void this.#answer(request, response))
  readonly #changed = new EventEmitter().setMaxListeners(0)
  readonly calls: Call[] = []
  readonly token = '123456:AA-never-shown'
  updates: Update[] = []
  /** The description of the conflict that getUpdates answers with. */
  conflict: string | undefined
  origin = ''
  #readers = 0
  #message = 100
  #next = 1

  static async start(): Promise<TelegramServer> {
    const server = new TelegramServer()
    server.#http.listen(0, '127.0.0.1')
    await once(server.#http, 'listening')
    server.origin = `http://127.0.0.1:${(server.#http.address() as AddressInfo).port}`
    return server
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections()
    this.#http.close()
    await once(this.#http, 'close')
  }

  /** Adds an update with the next number, and returns that. */
  add(update: object): number {
    const id = (this.#next += 1)
    this.updates.push({ update_id: id, ...update })
    this.#changed.emit('update')
    return id
  }

  message(from: number, text: string, chat = from): number {
    return this.add({
      message: {
        message_id: (this.#message += 1),
        from: { id: from, is_bot: false, first_name: 'Ada' },
        chat: { id: chat, type: chat > 0 ? 'private' : 'supergroup' },
        date: 1_795_000_000,
        text,
      },
    })
  }

  press(
    from: number,
    data: string,
    message: { readonly channel: string; readonly id: string },
  ): number {
    return this.add({
      callback_query: {
        id: `query-${this.#next + 1}`,
        from: { id: from, is_bot: false, first_name: 'Ada' },
        message: {
          message_id: Number(message.id),
          chat: { id: Number(message.channel), type: 'private' },
          date: 1,
        },
        chat_instance: '1',
        data,
      },
    })
  }

  async untilCalled(method: string, count = 1): Promise<Call> {
    for (;;) {
      const call = this.calls.filter((one) => one.method === method)[count - 1]
      if (call) return call
      await once(this.#changed, 'called')
    }
  }

  /** Resolves when all updates are confirmed. */
  async untilEmpty(): Promise<void> {
    while (this.updates.length > 0) await once(this.#changed, 'called')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(request.url ?? '') ?? []
    const send = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (token !== this.token)
      return send(401, { ok: false, error_code: 401, description: 'Unauthorized' })
    const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
    if (method !== 'getUpdates') {
      const result = this.#result(method, body)
      this.calls.push({ method, body, result })
      send(200, { ok: true, result })
      this.#changed.emit('called')
      return
    }
    this.calls.push({ method, body })
    const conflict =
      this.conflict ??
      (this.#readers > 0
        ? 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
        : undefined)
    if (conflict !== undefined)
      return send(409, { ok: false, error_code: 409, description: conflict })
    const offset = Number(body['offset'] ?? 0)
    this.updates = this.updates.filter(({ update_id: id }) => id >= offset)
    this.#changed.emit('called')
    this.#readers += 1
    const control = new AbortController()
    const timer = setTimeout(() => control.abort(), Number(body['timeout'] ?? 0) * 1000)
    response.once('close', () => control.abort())
    while (this.updates.length === 0 && !control.signal.aborted)
      await once(this.#changed, 'update', { signal: control.signal }).catch(() => undefined)
    clearTimeout(timer)
    this.#readers -= 1
    send(200, { ok: true, result: this.updates.slice(0, Number(body['limit'] ?? 100)) })
  }

  #result(method: string, body: Record<string, unknown>): unknown {
    if (method === 'getMe')
      return { id: 123456, is_bot: true, first_name: 'Bot', username: 'a_bot' }
    if (method === 'sendMessage' || method === 'editMessageText')
      return {
        message_id: body['message_id'] ?? (this.#message += 1),
        chat: { id: Number(body['chat_id']), type: 'private' },
        date: 1,
      }
    return true
  }
}
