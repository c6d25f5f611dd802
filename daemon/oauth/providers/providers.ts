import type {
  BuiltInProvider,
  DialectName,
  Gateway,
  ProviderEntry,
} from '../../../shared/config/schema.ts'
import { providerNameForm } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { didYouMean } from '../../../shared/text.ts'

/** A provider as configured: a built-in template, an entry of gateway.yaml, or one over the other. */
export type Provider = {
  readonly name: string
  readonly title: string
  /** What `iss` is checked against, and where discovery asks; without it neither happens. */
  readonly issuer?: string
  readonly authorizationEndpoint?: string
  readonly tokenEndpoint?: string
  readonly revocationEndpoint?: string
  readonly userinfoEndpoint?: string
  readonly deviceAuthorizationEndpoint?: string
  readonly dialect: DialectName
  /** Base of the dialect's own API, without a slash at its end; undefined where it is not known. */
  readonly apiUrl?: string
  readonly scopes: readonly string[]
  readonly scopeParameter: string
  readonly scopeSeparator: string
  readonly authorizationParameters: Readonly<Record<string, string>>
  readonly redirectHost: RedirectHost
  /** Port of the redirect URI, where it is not the one of all providers. */
  readonly callbackPort?: number
  readonly clientId?: string
  readonly clientSecretEnv?: string
  readonly permissionsPage?: string
  readonly clientPage?: string
}

export type RedirectHost = '127.0.0.1' | 'localhost'

/** True for what can be the name of a provider, and so of a file. */
export const isProviderName = (name: string): boolean => providerNameForm.test(name)

/** The names of all providers, built-in and configured, sorted. */
export const providerNames = (gateway: Gateway): string[] =>
  [...new Set([...Object.keys(providerTemplates), ...Object.keys(gateway.providers)])].sort()

/**
 * The provider of this name. Throws `provider-unknown`, or `provider-misconfigured` when neither an
 * issuer nor both endpoints say where to log in.
 */
export const findProvider = (name: string, gateway: Gateway): Provider => {
  const template = ownValue(providerTemplates, name)
  const entry = ownValue(gateway.providers, name)
  if (!template && !entry) throw unknownProvider(name, gateway)
  const provider = mergeProvider(name, template, entry ?? {})
  if (!provider.issuer && !(provider.authorizationEndpoint && provider.tokenEndpoint))
    throw new DoorwardError(
      'provider-misconfigured',
      `provider ${name} has no issuer, and not both an authorization and a token endpoint`,
      { hint: `set providers.${name}.issuer in gateway.yaml, or both endpoints` },
    )
  return provider
}

/**
 * Lays an entry of gateway.yaml over a template. With an issuer of its own no endpoint of the template
 * stays. Another authorization endpoint means another issuer; and the tokens of another token endpoint
 * must not travel to the template's other endpoints. How a dialect asks for scopes goes with it, under
 * whatever name: a second Slack workspace wants `user_scope` too.
 */
const mergeProvider = (
  name: string,
  template: Partial<ProviderTemplate> | undefined,
  entry: ProviderEntry,
): Provider => {
  const main = entry.issuer === undefined ? template : undefined
  const beside = entry.token_endpoint === undefined ? main : undefined
  const dialect = entry.dialect ?? template?.dialect ?? 'standard'
  const asking = dialect === 'standard' ? template : providerTemplates[dialect]
  return {
    name,
    title: template?.title ?? name,
    issuer: entry.issuer ?? (entry.authorization_endpoint ? undefined : template?.issuer),
    authorizationEndpoint: entry.authorization_endpoint ?? main?.authorizationEndpoint,
    tokenEndpoint: entry.token_endpoint ?? main?.tokenEndpoint,
    revocationEndpoint: entry.revocation_endpoint ?? beside?.revocationEndpoint,
    userinfoEndpoint: entry.userinfo_endpoint ?? beside?.userinfoEndpoint,
    deviceAuthorizationEndpoint:
      entry.device_authorization_endpoint ?? beside?.deviceAuthorizationEndpoint,
    dialect,
    apiUrl: entry.api_url ?? beside?.apiUrl,
    scopes: entry.scopes ?? template?.scopes ?? [],
    scopeParameter: asking?.scopeParameter ?? 'scope',
    scopeSeparator: asking?.scopeSeparator ?? ' ',
    authorizationParameters: asking?.authorizationParameters ?? {},
    redirectHost: entry.redirect_host ?? '127.0.0.1',
    callbackPort: entry.callback_port,
    clientId: entry.client_id,
    clientSecretEnv: entry.client_secret_env,
    permissionsPage: template?.permissionsPage,
    clientPage: template?.clientPage,
  }
}

const ownValue = <Value>(
  record: Readonly<Partial<Record<string, Value>>>,
  name: string,
): Value | undefined => (Object.hasOwn(record, name) ? record[name] : undefined)

const unknownProvider = (name: string, gateway: Gateway): DoorwardError => {
  const known = providerNames(gateway)
  const shown = isProviderName(name) ? ` ${name}` : ''
  const near = isProviderName(name) ? didYouMean(name, known) : undefined
  // Another that is near may still not be meant: gitlab is only two letters from github.
  return new DoorwardError('provider-unknown', `there is no provider${shown}`, {
    hint: `${near ?? `known: ${known.join(', ')};`} add others under providers: in gateway.yaml`,
  })
}

/** What is known of a provider before the configuration has its say. Data: every fact has its source. */
type ProviderTemplate = {
  /** As people write it. */
  readonly title: string
  /** What the provider sends as `iss` (RFC 9207) and in id tokens, exactly. */
  readonly issuer?: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** Only where it is the one of RFC 7009. */
  readonly revocationEndpoint?: string
  readonly userinfoEndpoint?: string
  readonly scopes: readonly string[]
  readonly scopeParameter?: string
  readonly scopeSeparator?: string
  /** Sent with every authorization request. */
  readonly authorizationParameters?: Readonly<Record<string, string>>
  /** RFC 8628, where the provider has a device flow that an app may use. */
  readonly deviceAuthorizationEndpoint?: string
  readonly dialect: DialectName
  /** Base of the API that the dialect asks who is logged in, and revokes at. */
  readonly apiUrl: string
  /** Where a person takes the permission back by hand. */
  readonly permissionsPage: string
  /** Where a person finds or makes the OAuth client, with its secret. */
  readonly clientPage: string
}

/** The providers that need no more than a client id. */
const providerTemplates: Readonly<Record<BuiltInProvider, ProviderTemplate>> = {
  google: {
    title: 'Google',
    // https://accounts.google.com/.well-known/openid-configuration has all of these.
    issuer: 'https://accounts.google.com',
    authorizationEndpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
    tokenEndpoint: 'https://oauth2.googleapis.com/token',
    revocationEndpoint: 'https://oauth2.googleapis.com/revoke',
    userinfoEndpoint: 'https://openidconnect.googleapis.com/v1/userinfo',
    // https://developers.google.com/identity/protocols/oauth2/scopes
    scopes: [
      'https://www.googleapis.com/auth/gmail.modify',
      'https://www.googleapis.com/auth/calendar',
    ],
    // A refresh token comes with offline access, and at a second login only after asking again:
    // https://developers.google.com/identity/protocols/oauth2/web-server#offline
    authorizationParameters: { access_type: 'offline', prompt: 'consent' },
    dialect: 'google',
    apiUrl: 'https://gmail.googleapis.com',
    permissionsPage: 'https://myaccount.google.com/connections',
    clientPage: 'https://console.cloud.google.com/apis/credentials',
  },
  github: {
    title: 'GitHub',
    // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/github-authentication-discovery-endpoints
    issuer: 'https://github.com/login/oauth',
    // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
    authorizationEndpoint: 'https://github.com/login/oauth/authorize',
    tokenEndpoint: 'https://github.com/login/oauth/access_token',
    // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps
    scopes: ['repo', 'user'],
    // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow
    deviceAuthorizationEndpoint: 'https://github.com/login/device/code',
    dialect: 'github',
    apiUrl: 'https://api.github.com',
    permissionsPage: 'https://github.com/settings/applications',
    clientPage: 'https://github.com/settings/developers',
  },
  slack: {
    title: 'Slack',
    // https://docs.slack.dev/authentication/installing-with-oauth: scopes of a person go in
    // `user_scope`, with commas; desktop redirects cannot ask for a bot's.
    authorizationEndpoint: 'https://slack.com/oauth/v2/authorize',
    // https://docs.slack.dev/reference/methods/oauth.v2.access
    tokenEndpoint: 'https://slack.com/api/oauth.v2.access',
    scopes: ['chat:write', 'channels:read'],
    scopeParameter: 'user_scope',
    scopeSeparator: ',',
    dialect: 'slack',
    apiUrl: 'https://slack.com/api',
    permissionsPage: 'https://slack.com/apps/manage',
    clientPage: 'https://api.slack.com/apps',
  },
}
