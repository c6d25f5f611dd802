import { once } from 'node:events'
import { type IncomingHttpHeaders, request as httpRequest } from 'node:http'

export type Reply = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON; throws when it is none. */
  readonly json: () => Record<string, unknown>
}

export type RawRequest = {
  readonly method?: string
  /** A list of values sends the header that often. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** A list of pieces is sent chunked, without a length. */
  readonly body?: string | Buffer | readonly Buffer[]
  readonly localAddress?: string
}

/** One request as bytes on the wire: nothing is added, mended or followed. */
export const send = async (url: string, options: RawRequest = {}): Promise<Reply> => {
  const { method = 'POST', headers = {}, body, localAddress } = options
  const request = httpRequest(url, { method, headers, agent: false, localAddress })
  const answered = new Promise<Reply>((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: () => JSON.parse(text) as Record<string, unknown>,
        })
      })
    })
  })
  if (Array.isArray(body)) {
    // What is left is sent all the same, without waiting, once there is an answer.
    let settled = false
    const settle = answered.then(
      () => (settled = true),
      () => (settled = true),
    )
    for (const piece of body as readonly Buffer[]) {
      if (request.destroyed || request.errored) break
      if (!request.write(piece) && !settled) await Promise.race([once(request, 'drain'), settle])
    }
    request.end()
  } else request.end(body as string | Buffer | undefined)
  return answered
}
