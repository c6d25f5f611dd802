import type { AccessToken, TokenSummary } from '../../../shared/api/api.ts'
import { type ContractServer, startContractServer } from './contract-server.ts'

/** What the daemon answers for a provider: a token, or a status and a problem. */
export type TokenAnswer = Partial<AccessToken> | { readonly refused: readonly [number, object] }

/** The token that `startTokenServer` gives for a provider unless told otherwise. */
export const tokenOf = (provider: string): string => `token-of-${provider}`

/** A daemon that gives out access tokens of these logins, and 404 for all others. */
export const startTokenServer = async (
  answers: Readonly<Record<string, TokenAnswer>>,
  accounts: Readonly<Record<string, string>> = {},
): Promise<ContractServer> =>
  startContractServer(({ path }) => {
    if (path === '/oauth/tokens')
      return [200, { tokens: Object.keys(answers).map((name) => toSummary(name, accounts[name])) }]
    const [, login = ''] = /^\/oauth\/tokens\/([^/]+)\/access/.exec(path) ?? []
    const provider = decodeURIComponent(login)
    const answer = answers[provider]
    if (answer && 'refused' in answer) return answer.refused
    if (!answer)
      return [404, { code: 'not-logged-in', detail: `you are not logged in to ${provider}` }]
    const token: AccessToken = {
      provider,
      accessToken: tokenOf(provider),
      tokenType: 'bearer',
      expiresAt: '2030-01-02T03:04:05.678Z',
      scopes: ['repo'],
      ...answer,
    }
    return [200, token]
  })

const toSummary = (provider: string, account: string | undefined): TokenSummary => ({
  provider,
  status: 'ok',
  account: account === undefined ? null : { id: account, name: account },
  scopes: ['repo'],
  expiresAt: null,
  refreshable: false,
  obtainedAt: '2026-01-02T03:04:05.678Z',
})
