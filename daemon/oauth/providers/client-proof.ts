import { type ClientAuth, ClientSecretPost, None } from 'oauth4webapi'
import type { Client } from './client-store.ts'
import type { Endpoints } from './discovery.ts'
import { jsonObjectIn } from './request.ts'

/** How the client authenticates: by secret in the body, unless the server supports only Basic. */
export const clientAuthentication = (
  { clientSecret }: Client,
  { server }: Endpoints,
  endpoint: 'token' | 'revocation' = 'token',
): ClientAuth => {
  if (clientSecret === undefined) return None()
  const listed =
    endpoint === 'revocation' ? server.revocation_endpoint_auth_methods_supported : undefined
  const methods = listed ?? server.token_endpoint_auth_methods_supported ?? ['client_secret_post']
  const onlyBasic =
    methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
  return onlyBasic ? clientSecretBasic(clientSecret) : ClientSecretPost(clientSecret)
}

/**
 * RFC 6749 section 2.3.1. The library's own function also encodes `-`, `.` and `_`, and some servers compare
 * without decoding.
 */
const clientSecretBasic =
  (clientSecret: string): ClientAuth =>
  (_server, { client_id: clientId }, _body, headers) => {
    headers.set('authorization', toBasic(clientId, clientSecret))
  }

/** Encodes a value as in `application/x-www-form-urlencoded`: letters, digits and `*-._` are not encoded. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

const toBasic = (clientId: string, clientSecret: string): string => {
  const credentials = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
  return `Basic ${Buffer.from(credentials).toString('base64')}`
}

type Send = (url: string, init: RequestInit) => Promise<Response>

/**
 * Sends a request whose client is refused once more with the other proof. Servers have to take Basic and
 * may take the body (RFC 6749 section 2.3.1); metadata list what a server takes, and not what this client
 * is registered for. A client without a secret has another proof only where an empty one is allowed.
 */
export const withOtherProof =
  (send: Send, isEmptySecretAllowed: boolean): Send =>
  async (url, init) => {
    const first = await send(url, init)
    const other = toOtherProof(init, isEmptySecretAllowed)
    if (!other || !isClientRefused(first, await readErrorCode(first))) return first
    const second = await send(url, other)
    const code = await readErrorCode(second)
    // A server that knows one proof only may call the other an invalid request.
    return isClientRefused(second, code) || code === 'invalid_request' ? first : second
  }

const readErrorCode = async (response: Response): Promise<unknown> =>
  jsonObjectIn(await response.clone().text())?.['error']

const isClientRefused = ({ status }: Response, code: unknown): boolean =>
  code === 'invalid_client' || (status === 401 && code === undefined)

/** The request with the secret in the body instead of the header, or the other way round. */
const toOtherProof = (
  init: RequestInit,
  isEmptySecretAllowed: boolean,
): RequestInit | undefined => {
  if (!(init.body instanceof URLSearchParams)) return undefined
  const headers = new Headers(init.headers)
  const body = new URLSearchParams(init.body)
  const [, encoded] = /^Basic (\S+)$/.exec(headers.get('authorization') ?? '') ?? []
  const clientId = body.get('client_id')
  const clientSecret = body.get('client_secret')
  if (encoded !== undefined) {
    const [id = '', secret = ''] = Buffer.from(encoded, 'base64').toString().split(':')
    headers.delete('authorization')
    body.set('client_id', formDecoded(id))
    body.set('client_secret', formDecoded(secret))
  } else if (clientId !== null && (clientSecret !== null || isEmptySecretAllowed)) {
    headers.set('authorization', toBasic(clientId, clientSecret ?? ''))
    if (clientSecret !== null) body.delete('client_id')
    body.delete('client_secret')
  } else return undefined
  return { ...init, headers, body }
}

const formDecoded = (text: string): string => new URLSearchParams(`x=${text}`).get('x') ?? ''
