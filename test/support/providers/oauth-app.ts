import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { problemMediaType, toProblem } from '../../../daemon/http/respond.ts'
import type { Wait } from '../../../daemon/oauth/dependencies.ts'
import { OAuth, type OAuthEvent } from '../../../daemon/oauth/oauth.ts'
import type { Login, ProblemDocument, StartedLogin } from '../../../shared/api/api.ts'
import { type Gateway, gatewayFileSchema } from '../../../shared/config/schema.ts'
import { type Home, prepareHome } from '../../../shared/home/home.ts'
import { temporaryHome } from '../temporary.ts'

export type Answer<Body> = {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

/** The OAuth routes alone, served as the daemon serves them but without its guard. */
export type OAuthApp = {
  readonly home: Home
  readonly oauth: OAuth
  readonly events: OAuthEvent[]
  /** Everything that was logged, one JSON text per line. */
  readonly logLines: string[]
  readonly send: <Body = ProblemDocument>(
    method: string,
    path: string,
    body?: unknown,
  ) => Promise<Answer<Body>>
  /** Starts a login and expects that to work. */
  readonly start: (body: object) => Promise<StartedLogin>
  /** The login once it has ended. */
  readonly ended: (loginId: string) => Promise<Login>
  /** The first event that fits, told already or to come. */
  readonly untilEvent: (fits: (event: OAuthEvent) => boolean) => Promise<OAuthEvent>
  /** Uses another gateway.yaml from now on, as a daemon does when the file is saved. */
  readonly configure: (gateway: object) => void
  readonly close: () => Promise<void>
}

export const startOAuthApp = async (options: {
  readonly gateway: object
  readonly env?: NodeJS.ProcessEnv
  readonly home?: Home
  readonly wait?: Wait
  readonly loginTimeoutMs?: number
  /** Of the process: where the keychain is. */
  readonly processEnv?: NodeJS.ProcessEnv
}): Promise<OAuthApp> => {
  const home = options.home ?? (await temporaryHome())
  await prepareHome(home)
  const events: OAuthEvent[] = []
  const announced = new EventEmitter()
  const logLines: string[] = []
  const write = (fields: object, message: string) => {
    logLines.push(JSON.stringify({ ...fields, message }))
  }
  const gateway = gatewayOf(options.gateway)
  const oauth = new OAuth({
    home,
    gateway,
    env: options.env ?? {},
    log: { info: write, warn: write, error: write },
    announce: (event) => {
      events.push(event)
      announced.emit('event')
    },
    ...(options.wait && { wait: options.wait }),
    ...(options.loginTimeoutMs !== undefined && { loginTimeoutMs: options.loginTimeoutMs }),
    ...(options.processEnv && { processEnv: options.processEnv }),
  })
  const server = createServer(appOf(oauth).callback()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const send = async <Body>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer<Body>> => {
    const response = await fetch(`${origin}${path}`, {
      method,
      ...(body !== undefined && {
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    })
    const text = await response.text()
    const { status, headers } = response
    return { status, headers, body: (text === '' ? undefined : JSON.parse(text)) as Body }
  }
  return {
    home,
    oauth,
    events,
    logLines,
    send,
    start: async (body) => {
      const answer = await send<StartedLogin>('POST', '/oauth/start', body)
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    ended: async (loginId) => (await send<Login>('GET', `/oauth/logins/${loginId}?wait=10`)).body,
    untilEvent: async (fits) => {
      for (;;) {
        const found = events.find(fits)
        if (found) return found
        await once(announced, 'event')
      }
    },
    configure: (next) => {
      Object.assign(gateway, gatewayOf(next))
      oauth.configured()
    },
    close: async () => {
      await oauth.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

/** A whole gateway configuration from the few keys a test cares for. */
export const gatewayOf = (keys: object): Gateway =>
  gatewayFileSchema.parse({ oauth: { callback_port: 0 }, ...keys })

const appOf = ({ routes, botRoutes }: OAuth): Koa => {
  const app = new Koa()
  app.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const problem = toProblem(error)
      ctx.status = problem.status
      ctx.body = JSON.stringify(problem)
      ctx.type = problemMediaType
    }
  })
  app.use(routes.routes())
  app.use(botRoutes.routes())
  return app
}
