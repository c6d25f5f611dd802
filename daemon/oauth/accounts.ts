import type {
  DefaultAccount,
  ProviderSummary,
  StatusProblem,
  TokenSummary,
} from '../../shared/api/api.ts'
import { compareLogins, formatLogin, getProviderName } from '../../shared/config/name-forms.ts'
import { type About, DoorwardError, toStatusProblem } from '../../shared/errors.ts'
import {
  readDefaultAccounts,
  resolveLogin,
  writeDefaultAccount,
} from '../../shared/home/default-accounts.ts'
import type { Home } from '../../shared/home/home.ts'
import { getDialect } from './dialects/dialects.ts'
import { findClient } from './providers/client-store.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { findServerError } from './providers/login-server.ts'
import { findProvider, providerNames } from './providers/providers.ts'
import { notLoggedIn } from './tokens/refresh.ts'
import { readToken, storageProblems, tokenProviders } from './tokens/token-store.ts'
import { type TokenRecord, toSummary } from './tokens/token-record.ts'

/** Every token file, by provider: its record, or why it cannot be used. Throws only for the folder. */
const readAll = async ({
  home,
}: OAuthDependencies): Promise<Map<string, TokenRecord | DoorwardError>> => {
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
export const listTokens = async (dependencies: OAuthDependencies): Promise<TokenSummary[]> => {
  const found = await readAll(dependencies)
  const isDefault = await findDefaults(dependencies, [...found.keys()])
  return [...found].map(([name, result]) => ({
    ...toTokenSummary(name, result, dependencies),
    ...(isDefault(name) && { default: true }),
  }))
}

/** Tells the logins that the name of their provider means; none where no account has a name. */
const findDefaults = async (
  { home }: OAuthDependencies,
  names: readonly string[],
): Promise<(login: string) => boolean> => {
  // `listProblems` reports a file that cannot be used.
  const defaults = await readDefaultAccounts(home).catch(() => undefined)
  const named = new Set(names.filter((name) => name.includes('@')).map(getProviderName))
  return (login) => {
    const provider = getProviderName(login)
    return (
      defaults !== undefined && named.has(provider) && resolveLogin(provider, defaults) === login
    )
  }
}

/**
 * Chooses the account that the name of a provider means; null removes the choice. Throws
 * `provider-unknown`, `not-logged-in` or an error of the files.
 */
export const setDefaultAccount = async (
  { home, gateway }: OAuthDependencies,
  provider: string,
  account: string | null,
): Promise<DefaultAccount> => {
  findProvider(provider, gateway)
  const login = account === null ? provider : formatLogin({ provider, account })
  const isLoggedIn = (await tokenProviders(home)).includes(login)
  if (account !== null && !isLoggedIn) throw notLoggedIn(login)
  await writeDefaultAccount(home, provider, account ?? undefined)
  return { provider, default: login }
}

/** Adds to `not-logged-in` which login the name means, and which others there are. */
export const explainNotLoggedIn = async (
  home: Home,
  { name, login }: { readonly name: string; readonly login: string },
  error: DoorwardError,
): Promise<DoorwardError> => {
  const others = (await tokenProviders(home)).filter(
    (other) => other !== login && getProviderName(other) === getProviderName(name),
  )
  const [other] = others
  if (other === undefined && login === name) return error
  const chosen = login === name ? '' : `, which ${name} means`
  const has = others.length > 0 ? `; you are logged in to ${others.join(', ')}` : ''
  const choice = other?.includes('@') ? other.replace('@', ' ') : `${name} --unnamed`
  const hint =
    name.includes('@') || other === undefined
      ? error.hint
      : `${error.hint}, or doorward oauth default ${choice}`
  return new DoorwardError(error.code, `${error.message}${chosen}${has}`, {
    cause: error,
    hint,
    about: error.about,
  })
}

/** Shown even where nothing is set up for them: targets and agents work with their tokens. */
const mainProviders = ['google', 'github', 'slack']

/**
 * The main providers and those of gateway.yaml, logged in or not, with whether their client is known; of the
 * other built-in ones those with a login or a client.
 */
export const listProviders = async (
  dependencies: OAuthDependencies,
): Promise<ProviderSummary[]> => {
  const found = await readAll(dependencies)
  const names = [...new Set([...providerNames(dependencies.gateway), ...found.keys()])].sort(
    compareLogins,
  )
  const isWanted = ({ provider, clientKnown, status }: ProviderSummary): boolean =>
    clientKnown ||
    status !== 'not-logged-in' ||
    mainProviders.includes(provider) ||
    Object.hasOwn(dependencies.gateway.providers, provider)
  const summaries = await Promise.all(
    names.map(async (name): Promise<ProviderSummary> => {
      const result = found.get(name)
      const token = result && toTokenSummary(name, result, dependencies)
      return {
        provider: name,
        ...(await clientFacts(name, dependencies)),
        status: token?.status ?? 'not-logged-in',
        account: token?.account ?? null,
      }
    }),
  )
  return summaries.filter(isWanted)
}

/** The problems of providers, with their fixes: the token folder, bad token files, ended logins. */
export const listProblems = async (dependencies: OAuthDependencies): Promise<StatusProblem[]> => [
  ...(await storageProblems(dependencies.home)),
  ...(await readDefaultAccounts(dependencies.home).then(
    () => [],
    (error: unknown) => [toProblem(error)],
  )),
  ...(await fileProblems(dependencies)),
]

const fileProblems = async (dependencies: OAuthDependencies): Promise<StatusProblem[]> =>
  [...(await readAll(dependencies))].flatMap(([name, result]) => {
    const about = { provider: name }
    if (result instanceof DoorwardError) return toProblem(result, about)
    const otherServer = findServerError(result, dependencies.gateway)
    if (otherServer) return toProblem(otherServer)
    if (toSummary(result, Date.now()).status !== 'needs-login') return []
    const detail = result.ended
      ? `the login to ${name} has ended: ${result.ended.cause}`
      : `the access token of ${name} has expired and there is no refresh token`
    return { code: 'needs-login', detail, hint: `doorward oauth login ${name}`, about }
  })

/** Throws any other error. */
export const toProblem = (error: unknown, about?: About): StatusProblem => {
  if (!(error instanceof DoorwardError)) throw error
  return { ...toStatusProblem(error), ...(about && { about }) }
}

const toTokenSummary = (
  name: string,
  result: TokenRecord | DoorwardError,
  dependencies: OAuthDependencies,
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
    : {
        ...toSummary(result, Date.now(), impliedScopes(name, dependencies)),
        ...(findServerError(result, dependencies.gateway) && {
          status: 'needs-login' as const,
          refreshable: false,
        }),
      }

/** Empty for a provider that is no longer in gateway.yaml. */
const impliedScopes = (name: string, { gateway }: OAuthDependencies) => {
  try {
    return getDialect(findProvider(name, gateway)).impliedScopes
  } catch {
    return {}
  }
}

/** Whether a client is known, and whether it can only log in by device code, as GitHub's without a secret. */
const clientFacts = async (
  name: string,
  { home, gateway, env }: OAuthDependencies,
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
