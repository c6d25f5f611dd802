import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { errorName, systemCode } from '../../shared/errors.ts'
import { joinUrl } from '../../shared/net.ts'
import { ProxyError } from '../../shared/network/faults.ts'
import { openRequest } from '../../shared/network/outgoing.ts'
import { withTimeLimit } from '../util/concurrency.ts'

/**
 * Requests of our own, sent to the public address: those that come back to the port for webhooks prove that
 * the tunnel leads there. Each path is used once and cannot be guessed.
 */
export class Pings {
  readonly #waiting = new Map<string, () => void>()
  readonly #limitMs: number

  constructor(limitMs = 8000) {
    this.#limitMs = limitMs
  }

  /** Answers a ping that is waited for; hands on every other request. */
  before(next: RequestListener): RequestListener {
    return (request, response) => {
      if (!this.#answer(request, response)) next(request, response)
    }
  }

  /** Sends one. Returns why it did not arrive, or undefined. */
  async send(publicUrl: string, signal: AbortSignal): Promise<string | undefined> {
    const path = `/doorward-ping/${randomBytes(16).toString('hex')}`
    let hasArrived = false
    this.#waiting.set(path, () => (hasArrived = true))
    try {
      const response = await withTimeLimit(this.#limitMs, signal, (limit) =>
        openRequest(joinUrl(publicUrl, path), { method: 'GET', signal: limit }),
      )
      // Whatever answers there could send without end.
      response.destroy()
      if (hasArrived && response.statusCode === 204) return undefined
      return `${hasArrived ? 'it' : 'something else'} answers there (${response.statusCode})`
    } catch (error) {
      if (hasArrived) return 'the answer does not come back'
      const isLate = error instanceof Error && ['TimeoutError', 'AbortError'].includes(error.name)
      if (isLate) return 'no answer'
      if (error instanceof ProxyError) return error.message
      const code = systemCode(error) ?? errorName(error)
      return code === 'ENOTFOUND' ? 'its name is not known (ENOTFOUND)' : code
    } finally {
      this.#waiting.delete(path)
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): boolean {
    const arrive = this.#waiting.get(request.url ?? '')
    if (!arrive) return false
    arrive()
    this.#waiting.delete(request.url ?? '')
    request.resume()
    response.writeHead(204, { 'cache-control': 'no-store' }).end()
    return true
  }
}
