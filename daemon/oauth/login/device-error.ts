import { DoorwardError } from '../../../shared/errors.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { Provider } from '../provider/providers.ts'
import { tokenRefusalOf } from '../provider/token-refusal.ts'

type Named = Pick<Provider, 'name' | 'title' | 'clientPage'>

/**
 * What an error of RFC 8628 section 3.5, or a provider's own, means for a login by device code;
 * undefined for one that means here what it means everywhere. The way out is in the message where a
 * person meets it as the end of a login.
 */
export const deviceError = (
  { provider }: { readonly provider: Provider },
  error: unknown,
): DoorwardError | undefined => {
  const refusal = tokenRefusalOf(error)
  if (!refusal) return undefined
  // Where no secret is sent, only the client id can be what is wrong.
  if (refusal.code === 'invalid_client' && dialectOf(provider).isDeviceFlowPublic)
    return unknownClient(provider)
  const code = [refusal.ownCode, refusal.code].find(
    (known) => known !== undefined && Object.hasOwn(meanings, known),
  )
  return code === undefined ? undefined : meanings[code]?.(provider)
}

/** For a provider without a device authorization endpoint. */
export const noDeviceFlow = ({ name, title }: Named): DoorwardError =>
  new DoorwardError('provider-misconfigured', `no device flow is known of ${title}`, {
    hint: `leave --device out (with --paste the browser may be on another machine), or set providers.${name}.device_authorization_endpoint in gateway.yaml`,
  })

/** For a 404 of the device authorization endpoint. */
export const unknownClient = ({ title, clientPage }: Named): DoorwardError =>
  new DoorwardError('provider-refused', `${title} does not know this client id`, {
    hint: `check the client id${at(clientPage)}, and that the device flow is enabled there`,
  })

/** The error of a login whose code was not entered before it ended. */
const codeExpired = ({ name, title }: Named): DoorwardError =>
  new DoorwardError('login-expired', `the code was not entered at ${title} in time`, {
    hint: again(name),
  })

const denied = ({ name, title }: Named): DoorwardError =>
  new DoorwardError('login-denied', `access was not allowed at ${title}`, { hint: again(name) })

const unknownCode = ({ name, title }: Named): DoorwardError =>
  new DoorwardError('provider-refused', `${title} does not know the device code any more`, {
    hint: again(name),
  })

const switchedOff = ({ name, title, clientPage }: Named): DoorwardError =>
  new DoorwardError(
    'provider-refused',
    `the device flow is not enabled in the settings of your app at ${title}${at(clientPage)}`,
    { hint: `enable it there, or log in without it: doorward oauth login ${name}` },
  )

const notAllowed = ({ name, title, clientPage }: Named): DoorwardError =>
  new DoorwardError(
    'provider-refused',
    `your app may not use the device flow of ${title}${at(clientPage)}`,
    {
      hint: `allow it in the settings of the app, or log in without: doorward oauth login ${name}`,
    },
  )

const meanings: Readonly<Record<string, (provider: Named) => DoorwardError>> = {
  access_denied: denied,
  // https://learn.microsoft.com/entra/identity-platform/v2-oauth2-device-code#expected-errors
  authorization_declined: denied,
  expired_token: codeExpired,
  // https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#error-codes-for-the-device-flow
  token_expired: codeExpired,
  device_flow_disabled: switchedOff,
  incorrect_device_code: unknownCode,
  bad_verification_code: unknownCode,
  invalid_grant: unknownCode,
  unauthorized_client: notAllowed,
  unsupported_grant_type: notAllowed,
}

const again = (name: string): string => `doorward oauth login ${name} --device`

const at = (page: string | undefined): string => (page === undefined ? '' : ` (${page})`)
