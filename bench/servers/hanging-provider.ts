import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How long its token endpoint takes. */
export const hangMs = 2000

export type HangingProvider = {
  readonly origin: string
  /** Until the next request for a token comes that will wait. */
  readonly untilAsked: () => Promise<void>
  readonly close: () => void
}

/**
 * A provider whose token endpoint waits, and then has none. An issuer below `/login/` gives a token at
 * once, but only the first time, so that a program can log in there before it is measured.
 */
export const startHangingProvider = async (): Promise<HangingProvider> => {
  let asked = (): void => undefined
  const loggedIn = new Set<string>()
  const server = createServer(({ url = '' }, response) => {
    const json = (body: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const [, issuer = '', rest] = /^(\/login\/\w+)(\/.*)$/.exec(url) ?? []
    if (rest === '/.well-known/openid-configuration') return json(metadata(`${origin}${issuer}`))
    if (issuer !== '' && !loggedIn.has(issuer)) {
      loggedIn.add(issuer)
      return json(token)
    }
    asked()
    return setTimeout(() => response.writeHead(503).end(), hangMs)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    untilAsked: () =>
      new Promise<void>((resolve) => {
        asked = resolve
      }),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const metadata = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/a`,
  token_endpoint: `${issuer}/t`,
  scopes_supported: ['openid', 'offline_access'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  response_types_supported: ['code'],
})

const token = {
  access_token: 'x'.repeat(200),
  token_type: 'Bearer',
  expires_in: 86_400 / 2,
  refresh_token: 'y',
  scope: 'openid offline_access',
}
