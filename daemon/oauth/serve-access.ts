import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AccessToken } from '../../shared/api.ts'
import { plainLine } from '../../shared/text.ts'
import { answerAtEndOfTurn } from '../end-of-turn.ts'
import type { Guard } from '../http/guard.ts'
import type { Log } from '../log/log.ts'
import { answerJsonText, answerProblem, sayHowToAsk } from '../http/plain-answer.ts'
import type { ServeFirst } from '../http/serve-first.ts'
import { minValidityMs } from './min-validity.ts'
import { isProviderName } from './provider/providers.ts'
import type { Tokens } from './token/tokens.ts'

/**
 * `GET /oauth/tokens/:provider/access` in front of the app: agents ask for it at every step they take.
 * The same guard, and the same answers as by the route, which has what this passes on.
 */
export const serveAccess = (
  guard: Guard,
  tokens: Pick<Tokens, 'atOnce' | 'access'>,
  log: Log,
): ServeFirst => {
  /** As it was answered last; gone with its token. */
  const texts = new WeakMap<AccessToken, string>()
  const textOf = (token: AccessToken): string => {
    const known = texts.get(token)
    if (known !== undefined) return known
    const text = JSON.stringify(token)
    texts.set(token, text)
    return text
  }

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
      const asked = { minValidityMs: minValidity, asker: askerOf(request.headers['user-agent']) }
      const token = tokens.atOnce(provider, asked) ?? (await tokens.access(provider, asked))
      const text = textOf(token)
      answerAtEndOfTurn(() => answerJsonText(response, 200, text, neverStored))
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

let last = { userAgent: '', asker: '' }

/** Who asks for a token, as the program calls itself: for the person to read, nothing to trust. */
export const askerOf = (userAgent = ''): string => {
  // Mostly the one that asked before.
  if (userAgent !== last.userAgent || userAgent === '') {
    const asker = plainLine(userAgent).trim().slice(0, 100) || 'a program without a name'
    last = { userAgent, asker }
  }
  return last.asker
}
