import { DoorwardError } from '../../../shared/errors.ts'
import { safeErrorCode } from '../provider/shown-text.ts'

/** What the login knows that a callback must fit. */
export type ExpectedCallback = {
  /** What `iss` must be where it comes; undefined when the provider's issuer is not known. */
  readonly issuer: string | undefined
  /** True where the provider's metadata promises an `iss` with every answer. */
  readonly issuerRequired: boolean
  /** Where the browser was sent to log in. */
  readonly authorizationEndpoint: string | undefined
}

/** The `state` of a callback, for finding its login. Throws `callback-invalid` unless there is exactly one. */
export const readState = (parameters: URLSearchParams): string => {
  const [state, ...more] = parameters.getAll('state')
  if (!state) throw invalid('it has no state')
  if (more.length > 0) throw invalid('it has more than one state')
  return state
}

/**
 * Reads an authorization response whose state has been found: issuer first, then error, then code.
 * Says `denied` when the person refused. Throws `callback-invalid` or `issuer-mismatch`
 * (RFC 9207 section 2.4), after which the login keeps waiting.
 */
export const readCallback = (
  parameters: URLSearchParams,
  expected: ExpectedCallback,
): { readonly kind: 'code' } | { readonly kind: 'error'; readonly error: string } => {
  for (const name of ['iss', 'error', 'code', 'response', 'id_token', 'token', 'access_token'])
    if (parameters.getAll(name).length > 1) throw invalid(`it has more than one ${name}`)
  checkIssuer(parameters.get('iss'), expected)
  const error = parameters.get('error')
  if (error) return { kind: 'error', error: safeErrorCode(error) ?? 'unnamed error' }
  if (!parameters.get('code')) throw invalid('it has neither a code nor an error')
  return { kind: 'code' }
}

/** The parameters of a pasted address, which must be the redirect URI itself. Throws `callback-invalid`. */
export const readPasted = (text: string, redirectUri: string): URLSearchParams => {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined
  const isOurs = url && `${url.origin}${url.pathname}` === redirectUri && !url.username
  if (isOurs) return url.searchParams
  throw new DoorwardError('callback-invalid', 'the pasted address is not the redirect URI', {
    hint: `paste the whole address that begins with ${redirectUri}?`,
  })
}

const checkIssuer = (iss: string | null, expected: ExpectedCallback): void => {
  const { issuer, issuerRequired, authorizationEndpoint } = expected
  if (issuer === undefined) return checkOrigin(iss, authorizationEndpoint)
  if (iss === null && issuerRequired)
    throw new DoorwardError('issuer-mismatch', 'the answer does not say which provider it is from')
  if (iss !== null && iss !== issuer)
    throw new DoorwardError('issuer-mismatch', 'the answer comes from another provider')
}

/**
 * A provider of which no issuer is known may have sent the browser on to another one, to be given its
 * code by us (RFC 9207 section 2.4: an `iss` that was not announced is rather refused).
 */
const checkOrigin = (iss: string | null, authorizationEndpoint = ''): void => {
  if (iss === null || originOf(iss) === originOf(authorizationEndpoint)) return
  throw new DoorwardError('issuer-mismatch', 'the answer comes from another provider', {
    hint: 'if it is the right one, set its issuer in gateway.yaml',
  })
}

const originOf = (text: string): string | undefined =>
  URL.canParse(text) ? new URL(text).origin : undefined

const invalid = (why: string): DoorwardError =>
  new DoorwardError('callback-invalid', `this is not the answer a login waits for: ${why}`, {
    hint: 'use the address of the browser window in which you approved this login',
  })
