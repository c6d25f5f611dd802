import type { IncomingMessage, ServerResponse } from 'node:http'
import { plainLine } from '../../shared/plain-text.ts'
import type { Guard } from '../guard.ts'
import type { Log } from '../log.ts'
import { answerJson, answerProblem, sayHowToAsk } from '../plain-answer.ts'
import type { ServeFirst } from '../serve-first.ts'
import { minValidityMs } from './min-validity.ts'
import { isProviderName } from './provider/providers.ts'
import type { Tokens } from './token/token.ts'

/**
 * `GET /oauth/tokens/:provider/access` in front of the app: agents ask for it at every step they take.
 * The same guard, and the same answers as by the route, which has what this passes on.
 */
export const serveAccess = (guard: Guard, access: Tokens['access'], log: Log): ServeFirst => {
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    { provider, query }: { readonly provider: string; readonly query: string },
  ): Promise<void> => {
    let isLetIn = false
    try {
      guard(request)
      isLetIn = true
      const given = query === '' ? null : new URLSearchParams(query).getAll('min_validity')
      const minValidity = given?.length ? minValidityMs(given) : undefined
      const asker = askerOf(request.headers['user-agent'])
      const token = await access(provider, { minValidityMs: minValidity, asker })
      answerJson(response, 200, token, neverStored)
    } catch (error) {
      if (isLetIn)
        for (const [name, value] of Object.entries(neverStored)) response.setHeader(name, value)
      sayHowToAsk(response, error)
      answerProblem(response, error, { log, path: `/oauth/tokens/${provider}/access` })
    }
  }
  return (request, response) => {
    if (request.method !== 'GET') return false
    const [, provider, query = ''] = accessPath.exec(request.url ?? '') ?? []
    if (provider === undefined || !isProviderName(provider)) return false
    void serve(request, response, { provider, query })
    return true
  }
}

const neverStored = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

const accessPath = /^\/oauth\/tokens\/([^/?%]+)\/access(?:\?(.*))?$/

/** Who asks for a token, as the program calls itself: for the person to read, nothing to trust. */
export const askerOf = (userAgent: string | undefined): string =>
  plainLine(userAgent ?? '')
    .trim()
    .slice(0, 100) || 'a program without a name'
