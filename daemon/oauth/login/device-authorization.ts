import {
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  None,
  processDeviceAuthorizationResponse,
  processDeviceCodeResponse,
} from 'oauth4webapi'
import { z } from 'zod'
import { DoorwardError } from '../../../shared/errors.ts'
import { getDialect } from '../dialects/dialects.ts'
import {
  findIdToken,
  standardAnswer,
  tokenRequestOptions,
  withTenantIssuer,
} from '../dialects/token-endpoint.ts'
import { clientAuthentication } from '../providers/client-proof.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import {
  getOAuthError,
  isTransientOAuthError,
  providerError,
  refusalError,
} from '../providers/errors.ts'
import type { Provider } from '../providers/providers.ts'
import { isSafeAddress, jsonObjectIn } from '../providers/request.ts'
import { type Grant, toGrant } from '../tokens/token-record.ts'

export type DeviceClient = {
  readonly provider: Provider
  readonly client: Client
  readonly endpoints: Endpoints
}

/**
 * Requests a device code (RFC 8628 section 3.1). Throws `provider-misconfigured` where the provider has no
 * such endpoint, `provider-refused` or `provider-unavailable`.
 */
export const requestDeviceCode = async (
  from: DeviceClient,
  scopes: readonly string[],
  signal: AbortSignal,
): Promise<DeviceAuthorization> => {
  const { provider, client, endpoints } = from
  const { server } = endpoints
  const endpoint = server.device_authorization_endpoint
  if (endpoint === undefined)
    throw new DoorwardError(
      'provider-misconfigured',
      `the device flow of ${provider.title} is not known`,
      {
        hint: `leave out --device (with --paste the browser may be on another machine), or set providers.${provider.key}.device_authorization_endpoint in gateway.yaml`,
      },
    )
  const { host } = new URL(endpoint)
  const refused = toRefused(from)
  const wireClient = { client_id: client.clientId }
  const parameters: Record<string, string> =
    scopes.length === 0 ? {} : { [provider.scopeParameter]: scopes.join(provider.scopeSeparator) }
  try {
    const response = await deviceAuthorizationRequest(
      server,
      wireClient,
      getClientAuthentication(from),
      parameters,
      tokenRequestOptions(endpoint, endpoints, signal),
    )
    // GitHub's answer to an unknown client.
    if (response.status === 404) throw refusalError(refused, { code: 'invalid_client' })
    const answer = await standardAnswer(response, getDialect(provider), endpoints)
    if (answer.status !== 200) await processDeviceAuthorizationResponse(server, wireClient, answer)
    return readDeviceAuthorization(await answer.text(), endpoint)
  } catch (error) {
    throw providerError(error, `${host} issued no device code`, refused)
  }
}

/**
 * Polls the token endpoint once (RFC 8628 section 3.4). Returns the grant, or why there is none yet; throws
 * what ends the login: `login-denied`, `login-expired` or `provider-refused`.
 */
export const askForGrant = async (
  from: DeviceClient,
  deviceCode: string,
  signal: AbortSignal,
): Promise<Grant | PollResult> => {
  const { provider, client, endpoints } = from
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await deviceCodeGrantRequest(
      server,
      wireClient,
      getClientAuthentication(from),
      deviceCode,
      tokenRequestOptions(server.token_endpoint, endpoints, signal),
    )
    const answer = await standardAnswer(response, getDialect(provider), endpoints)
    const checked = withTenantIssuer(endpoints, await findIdToken(answer))
    return toGrant(await processDeviceCodeResponse(checked, wireClient, answer))
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'provider-unavailable')
      return 'unreachable'
    const code = getOAuthError(error)
    if (code === 'authorization_pending' || code === 'slow_down') return code
    if (code !== undefined && isTransientOAuthError(code)) return 'unreachable'
    const { host } = new URL(server.token_endpoint)
    const refused = { ...toRefused(from), secrets: [deviceCode] }
    throw providerError(error, `the login failed at ${host}`, refused)
  }
}

/** The request as it is sent: some providers want no secret for it. */
const toRefused = ({ provider, client }: DeviceClient) => ({
  provider,
  client: getDialect(provider).isDeviceFlowPublic ? { clientId: client.clientId } : client,
  device: true as const,
})

const getClientAuthentication = ({ provider, client, endpoints }: DeviceClient) =>
  getDialect(provider).isDeviceFlowPublic ? None() : clientAuthentication(client, endpoints)

/** A device code and what a user needs for it, checked to be safe to show and to open. */
type DeviceAuthorization = {
  /** Secret: it gives access to the tokens. */
  readonly deviceCode: string
  readonly userCode: string
  readonly verificationUrl: string
  /** The same page with the user code in its address, if the provider has one. */
  readonly verificationUrlComplete: string | undefined
  readonly lifetimeSeconds: number | undefined
  readonly intervalSeconds: number | undefined
}

/**
 * Reads a device authorization response (RFC 8628 section 3.2) of this endpoint. An invalid lifetime or
 * interval is ignored. Throws `provider-refused` when a code or page is missing or must not be shown.
 */
export const readDeviceAuthorization = (text: string, endpoint: string): DeviceAuthorization => {
  const { host } = new URL(endpoint)
  const answer = answerSchema.safeParse(jsonObjectIn(text)).data
  if (!answer) throw refuse(`${host} sent no usable device code`)
  const page = answer.verification_uri ?? answer.verification_url
  const verificationUrl = page === undefined ? undefined : safePage(page, endpoint)
  if (verificationUrl === undefined)
    throw refuse(`${host} named no https page where the code could be entered`)
  const complete = answer.verification_uri_complete
  return {
    deviceCode: answer.device_code,
    userCode: answer.user_code,
    verificationUrl,
    verificationUrlComplete: complete === undefined ? undefined : safePage(complete, endpoint),
    lifetimeSeconds: answer.expires_in,
    intervalSeconds: answer.interval,
  }
}

/** Some providers send numbers as text. */
const seconds = z.coerce.number().positive().optional().catch(undefined)
const page = z.string().max(2048).optional().catch(undefined)

const answerSchema = z.object({
  device_code: z.string().min(1).max(4096),
  // Printed on terminals and typed by a person: too short for a sentence or a command.
  user_code: z.string().regex(/^[A-Za-z0-9-]{1,20}$/),
  verification_uri: page,
  /** The name in drafts of the RFC, and at Google. */
  verification_url: page,
  verification_uri_complete: page,
  expires_in: seconds,
  interval: seconds,
})

const safePage = (text: string, endpoint: string): string | undefined =>
  isSafeAddress(text, endpoint) ? new URL(text).href : undefined

const refuse = (message: string): DoorwardError =>
  new DoorwardError('provider-refused', message, {
    hint: 'check the device authorization endpoint in gateway.yaml, or log in without --device',
  })

/** The result of a poll without tokens. */
export type PollResult = 'authorization_pending' | 'slow_down' | 'unreachable'
