import { protectedResourceRequest } from 'oauth4webapi'
import type { Account } from '../../../shared/api.ts'
import type { Endpoints } from '../provider/discovery.ts'
import type { Dialect } from '../dialect/dialect.ts'
import type { Grant } from '../token/grant.ts'
import { requestOptions } from '../provider/request-provider.ts'
import { textOf } from '../provider/shown-text.ts'
import { withTimeLimit } from '../../time-limit.ts'

/** For all that is asked: a name is not worth a longer wait of the person at the browser. */
const timeoutMs = 20_000

/**
 * Who has logged in: from the id token, else from the userinfo endpoint where there is one, else as the
 * provider's dialect asks. Not knowing it is null, never an error: the tokens are good all the same.
 */
export const findAccount = async (
  grant: Grant,
  endpoints: Endpoints,
  api: Api,
  ended: AbortSignal,
): Promise<Account | null> =>
  withTimeLimit(timeoutMs, ended, (signal) => askForAccount(grant, endpoints, api, signal))

type Api = { readonly identify: Dialect['identify']; readonly apiUrl?: string }

const askForAccount = async (
  grant: Grant,
  { server }: Endpoints,
  { identify, apiUrl }: Api,
  signal: AbortSignal,
): Promise<Account | null> => {
  const fromToken = grant.idClaims ? accountOf(grant.idClaims) : undefined
  if (fromToken && fromToken.name !== fromToken.id) return fromToken
  const endpoint = server.userinfo_endpoint
  const fromUserinfo = endpoint ? await askUserinfo(endpoint, grant.accessToken, signal) : undefined
  // OpenID Connect Core section 5.3.2: userinfo of another subject must not be used.
  const isSame = !fromToken || fromToken.id === fromUserinfo?.id
  const known = (isSame ? fromUserinfo : undefined) ?? fromToken
  if (known || !identify || apiUrl === undefined) return known ?? null
  return (await identify(grant.accessToken, apiUrl, signal).catch(() => undefined)) ?? null
}

/** The account in id token claims or a userinfo answer, or undefined when no id is in it. */
export const accountOf = (claims: Readonly<Record<string, unknown>>): Account | undefined => {
  const id = textOf(claims['sub']) ?? textOf(claims['id'])
  if (id === undefined) return undefined
  const names = ['email', 'preferred_username', 'login', 'username', 'name']
  const name = names.map((key) => textOf(claims[key])).find((text) => text !== undefined)
  return { id, name: name ?? id }
}

const askUserinfo = async (
  endpoint: string,
  accessToken: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  try {
    const headers = new Headers({ accept: 'application/json' })
    const response = await protectedResourceRequest(
      accessToken,
      'GET',
      new URL(endpoint),
      headers,
      null,
      requestOptions(endpoint, signal),
    )
    if (response.status !== 200) return undefined
    const body: unknown = await response.json()
    return typeof body === 'object' && body !== null
      ? accountOf(body as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
