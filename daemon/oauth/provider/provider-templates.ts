import type { BuiltInProvider, DialectName } from '../../../shared/config/schema.ts'

/** What is known of a provider before the configuration has its say. Data: every fact has its source. */
export type ProviderTemplate = {
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
export const providerTemplates: Readonly<Record<BuiltInProvider, ProviderTemplate>> = {
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
