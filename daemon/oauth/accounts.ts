import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { getDialect } from './dialects/dialects.ts'
import { findClient } from './providers/client-store.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { findProvider, providerNames } from './providers/providers.ts'
import { readToken, storageProblems, tokenProviders } from './tokens/token-store.ts'
import { type TokenRecord, toSummary } from './tokens/token-record.ts'

type Sources = Pick<OAuthDependencies, 'home' | 'gateway' | 'env'>

/** Every token file, by provider: its record, or why it cannot be used. Throws only for the folder. */
const readAll = async ({ home }: Sources): Promise<Map<string, TokenRecord | DoorwardError>> => {
  const results = new Map<string, TokenRecord | DoorwardError>()
  for (const name of await tokenProviders(home)) {
    const result = await readToken(home, name).catch((error: unknown) => {
      if (error instanceof DoorwardError) return error
      throw error
    })
    if (result) results.set(name, result)
  }
  return results
}

/** `GET /oauth/tokens`. A file that cannot be used is shown as `needs-login`. */
export const listTokens = async (sources: Sources): Promise<TokenSummary[]> =>
  [...(await readAll(sources))].map(([name, result]) => toTokenSummary(name, result, sources))

/** All providers, logged in or not, with whether their client is known. */
export const listProviders = async (sources: Sources): Promise<ProviderSummary[]> => {
  const found = await readAll(sources)
  const names = [...new Set([...providerNames(sources.gateway), ...found.keys()])].sort()
  return Promise.all(
    names.map(async (name) => {
      const result = found.get(name)
      const token = result && toTokenSummary(name, result, sources)
      return {
        provider: name,
        ...(await clientFacts(name, sources)),
        status: token?.status ?? 'not-logged-in',
        account: token?.account ?? null,
      }
    }),
  )
}

/** What keeps providers from working and how to fix it: the token folder, bad token files, ended logins. */
export const listProblems = async (sources: Sources): Promise<StatusProblem[]> => [
  ...(await storageProblems(sources.home)),
  ...(await fileProblems(sources)),
]

const fileProblems = async (sources: Sources): Promise<StatusProblem[]> =>
  [...(await readAll(sources))].flatMap(([name, result]) => {
    if (result instanceof DoorwardError)
      return [{ code: result.code, detail: result.message, hint: result.hint ?? '' }]
    if (toSummary(result, Date.now()).status !== 'needs-login') return []
    const detail = result.ended
      ? `the login to ${name} has ended: ${result.ended.cause}`
      : `the access token of ${name} has expired and there is no refresh token`
    return [{ code: 'needs-login', detail, hint: `doorward oauth login ${name}` }]
  })

const toTokenSummary = (
  name: string,
  result: TokenRecord | DoorwardError,
  sources: Sources,
): TokenSummary =>
  result instanceof DoorwardError
    ? {
        provider: name,
        status: 'needs-login',
        account: null,
        scopes: [],
        expiresAt: null,
        refreshable: false,
        obtainedAt: new Date(0).toISOString(),
      }
    : toSummary(result, Date.now(), impliedScopes(name, sources))

/** None for a provider that is no longer in gateway.yaml. */
const impliedScopes = (name: string, { gateway }: Sources) => {
  try {
    return getDialect(findProvider(name, gateway)).impliedScopes
  } catch {
    return {}
  }
}

/** Whether a client is known, and whether it can only log in by device code, as GitHub's without a secret. */
const clientFacts = async (
  name: string,
  { home, gateway, env }: Sources,
): Promise<Pick<ProviderSummary, 'clientKnown' | 'device'>> => {
  try {
    const provider = findProvider(name, gateway)
    const { clientSecret } = await findClient(home, provider, env)
    const device =
      clientSecret === undefined &&
      getDialect(provider).isDeviceFlowPublic === true &&
      provider.deviceAuthorizationEndpoint !== undefined
    return { clientKnown: true, ...(device && { device }) }
  } catch {
    return { clientKnown: false }
  }
}
