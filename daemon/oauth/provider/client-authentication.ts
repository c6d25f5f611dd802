import { type ClientAuth, ClientSecretBasic, ClientSecretPost, None } from 'oauth4webapi'
import type { Client } from './client-file.ts'
import type { Endpoints } from './discovery.ts'

/** How the client proves who it is: by secret in the body, unless the server says it takes only Basic. */
export const clientAuthentication = (client: Client, { server }: Endpoints): ClientAuth => {
  if (client.clientSecret === undefined) return None()
  const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_post']
  const onlyBasic =
    methods.includes('client_secret_basic') && !methods.includes('client_secret_post')
  return onlyBasic ? ClientSecretBasic(client.clientSecret) : ClientSecretPost(client.clientSecret)
}
