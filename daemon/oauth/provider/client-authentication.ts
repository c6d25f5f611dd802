import { type ClientAuth, ClientSecretPost, None } from 'oauth4webapi'
import type { Client } from './client-file.ts'
import type { Endpoints } from './discovery.ts'

/** How the client proves who it is: by secret in the body, unless the server says it takes only Basic. */
export const clientAuthentication = (client: Client, { server }: Endpoints): ClientAuth => {
  if (client.clientSecret === undefined) return None()
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_post']
  const onlyBasic =
    methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
  return onlyBasic ? clientSecretBasic(client.clientSecret) : ClientSecretPost(client.clientSecret)
}

/**
 * RFC 6749 section 2.3.1. The library's own encodes `-`, `.` and `_` too, and some servers compare
 * without decoding.
 */
const clientSecretBasic =
  (clientSecret: string): ClientAuth =>
  (_server, { client_id: clientId }, _body, headers) => {
    const credentials = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }

/** As a value in `application/x-www-form-urlencoded`: letters, digits and `*-._` stay as they are. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
