import {
  None,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  processDeviceAuthorizationResponse,
  processDeviceCodeResponse,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { dialectOf } from '../dialect/dialects.ts'
import { clientAuthentication } from '../provider/client-authentication.ts'
import type { Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'
import { oauthErrorOf, providerError } from '../provider/provider-error.ts'
import type { Provider } from '../provider/providers.ts'
import { requestOptions } from '../provider/request-provider.ts'
import { isPassing } from '../provider/token-refusal.ts'
import { type Grant, grantOf } from '../token/grant.ts'
import { standardAnswer } from '../token/read-answer.ts'
import { deviceError, noDeviceFlow, unknownClient } from './device-error.ts'
import { type DeviceAuthorization, readDeviceAuthorization } from './read-device-authorization.ts'
import type { PollSign } from './poll-pace.ts'

/** Who asks whom for a device code. */
export type DeviceClient = {
  readonly provider: Provider
  readonly client: Client
  readonly endpoints: Endpoints
}

/**
 * Asks for a device code (RFC 8628 section 3.1). Throws `provider-misconfigured` where the provider has
 * no such endpoint, `provider-refused` and `provider-unavailable`.
 */
export const requestDeviceCode = async (
  who: DeviceClient,
  scopes: readonly string[],
  signal: AbortSignal,
): Promise<DeviceAuthorization> => {
  const { provider, client, endpoints } = who
  const { server } = endpoints
  const endpoint = server.device_authorization_endpoint
  if (endpoint === undefined) throw noDeviceFlow(provider)
  const { host } = new URL(endpoint)
  const wireClient = { client_id: client.clientId }
  const parameters: Record<string, string> =
    scopes.length === 0 ? {} : { [provider.scopeParameter]: scopes.join(provider.scopeSeparator) }
  try {
    const response = await deviceAuthorizationRequest(
      server,
      wireClient,
      authenticationOf(who),
      parameters,
      requestOptions(endpoint, signal),
    )
    // GitHub's answer to a client that it does not know.
    if (response.status === 404) throw unknownClient(provider)
    const answer = await standardAnswer(response, dialectOf(provider), endpoints)
    if (answer.status !== 200) await processDeviceAuthorizationResponse(server, wireClient, answer)
    return readDeviceAuthorization(await answer.text(), endpoint)
  } catch (error) {
    throw deviceError(who, error) ?? providerError(error, `${host} gave no device code`, who)
  }
}

/**
 * Asks once whether the person has entered the code (RFC 8628 section 3.4). Gives the grant, or why
 * there is none yet; throws what ends the login: `login-denied`, `login-expired`, `provider-refused`.
 */
export const askForGrant = async (
  who: DeviceClient,
  deviceCode: string,
  signal: AbortSignal,
): Promise<Grant | PollSign> => {
  const { provider, client, endpoints } = who
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await deviceCodeGrantRequest(
      server,
      wireClient,
      authenticationOf(who),
      deviceCode,
      requestOptions(server.token_endpoint, signal),
    )
    const answer = await standardAnswer(response, dialectOf(provider), endpoints)
    return grantOf(await processDeviceCodeResponse(server, wireClient, answer))
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'provider-unavailable')
      return 'unreachable'
    const code = oauthErrorOf(error)
    if (code === 'authorization_pending' || code === 'slow_down') return code
    if (code !== undefined && isPassing(code)) return 'unreachable'
    const { host } = new URL(server.token_endpoint)
    throw deviceError(who, error) ?? providerError(error, `the login failed at ${host}`, who)
  }
}

const authenticationOf = ({ provider, client, endpoints }: DeviceClient) =>
  dialectOf(provider).isDeviceFlowPublic ? None() : clientAuthentication(client, endpoints)
