import type { ServerResponse } from 'node:http'
import type { Login, StartedLogin, TokenSummary } from '../../../shared/api/api.ts'
import { statusWith } from '../../support/daemon/fake-daemon.ts'
import { type Answer, type ContractServer, startContractServer } from './contract-server.ts'

/** What a start answers. */
export const started: StartedLogin = {
  loginId: 'login_1',
  provider: 'github',
  authorizationUrl: 'https://login.example.com/authorize?client_id=c&state=s&x=$(id)',
  redirectUri: 'http://127.0.0.1:53174/callback',
  scopes: ['repo'],
  expiresAt: '2026-06-07T10:00:00.000Z',
}
export const pending: Login = { loginId: 'login_1', provider: 'github', status: 'pending' }
export const authorized: Login = {
  ...pending,
  status: 'authorized',
  account: { id: '1', name: 'octocat' },
}

export type LoginServerOptions = {
  /** Who is logged in before. */
  readonly tokens?: readonly Partial<TokenSummary>[]
  /** In place of the usual start. */
  readonly start?: Partial<StartedLogin>
  /** Answers what is pasted; by default that the state is wrong. */
  readonly redirect?: Answer
  readonly cancel?: () => readonly [number, unknown]
  /** Is given a question that is left open, to be answered by the test. */
  readonly waiting?: (response: ServerResponse) => void
}

/**
 * A daemon whose login answers this, one after the other, the last one for ever; `open` leaves the
 * question open.
 */
export const startLoginServer = async (
  answers: readonly (Login | 'open')[],
  {
    tokens = [],
    start,
    redirect,
    cancel = () => [204, undefined],
    waiting,
  }: LoginServerOptions = {},
): Promise<ContractServer> => {
  const left = [...answers]
  return startContractServer((call, response) => {
    const { method, path } = call
    if (path === '/oauth/start') return [201, { ...started, ...start }]
    if (path === '/status') return [200, statusWith()]
    if (path === '/oauth/tokens') return [200, { tokens }]
    if (method === 'DELETE') return cancel()
    if (path.endsWith('/redirect'))
      return redirect
        ? redirect(call, response)
        : [400, { code: 'callback-invalid', detail: 'the state is not of this login', status: 400 }]
    if (!path.includes('?wait=') && left[0] === 'open') return [200, pending]
    const answer = left.length > 1 ? left.shift() : left[0]
    if (answer !== 'open') return [200, answer]
    response.setHeader('content-type', 'application/json')
    response.flushHeaders()
    waiting?.(response)
    return undefined
  })
}
