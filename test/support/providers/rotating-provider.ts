import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Home } from '../../../shared/home/home.ts'

/** A provider whose refresh tokens are good once, and that notes when one comes again. */
export type RotatingProvider = {
  /** An entry of `providers:` named `acme`. */
  readonly entry: string
  /** The origin of its token endpoint. */
  readonly origin: string
  readonly refreshes: () => number
  /** Refresh tokens that came a second time, or while another one was being answered. */
  readonly clashes: () => number
  /** The token that is good now; it is the newest. */
  readonly isGood: (accessToken: string) => boolean
  /** Keeps answers back until the returned function is called. */
  readonly hold: () => { readonly arrived: Promise<void>; readonly release: () => void }
  readonly close: () => void
}

/** Access tokens live for so many seconds. */
export const startRotatingProvider = async (lifetime: number): Promise<RotatingProvider> => {
  let newest = 0
  let refreshes = 0
  let clashes = 0
  let underWay = 0
  let held: Promise<void> | undefined
  let arrive = (): void => undefined
  const answer = async (body: string, response: ServerResponse) => {
    refreshes += 1
    const isNewest = new URLSearchParams(body).get('refresh_token') === `rt-${newest}`
    if (!isNewest || underWay > 0) clashes += 1
    if (!isNewest) {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end('{"error":"invalid_grant"}')
      return
    }
    underWay += 1
    arrive()
    await held
    newest += 1
    underWay -= 1
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({
        access_token: `at-${newest}`,
        refresh_token: `rt-${newest}`,
        token_type: 'Bearer',
        expires_in: lifetime,
      }),
    )
  }
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.once('end', () => void answer(body, response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    entry: `{ authorization_endpoint: "${origin}/a", token_endpoint: "${origin}/t", client_id: me }`,
    refreshes: () => refreshes,
    clashes: () => clashes,
    isGood: (accessToken) => /^at-\d+$/.test(accessToken),
    hold: () => {
      let release = (): void => undefined
      const arrived = new Promise<void>((resolve) => (arrive = resolve))
      held = new Promise((resolve) => (release = resolve))
      return { arrived, release }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Writes the file of a login at `acme` whose access token has just ended. */
export const storeLogin = async (home: Home): Promise<void> => {
  await mkdir(home.tokens, { recursive: true, mode: 0o700 })
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
  const record = {
    version: 1,
    provider: 'acme',
    account: null,
    scopes: [],
    tokenType: 'Bearer',
    accessToken: 'ended',
    refreshToken: 'rt-0',
    expiresAt: new Date(Date.now() - 1000).toISOString(),
    obtainedAt: hourAgo,
    clientId: 'me',
  }
  await writeFile(join(home.tokens, 'acme.json'), JSON.stringify(record), { mode: 0o600 })
}
