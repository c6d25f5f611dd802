import type { BuiltInProvider } from '../../../shared/config/name-forms.ts'
import type { DialectName } from '../../../shared/config/schema.ts'

/** The app that a person registers at a provider, for hints and for the table of docs/providers.md. */
export type App = {
  /** What to create, as the beginning of a sentence. */
  readonly create: string
  /** The kind of client by its name at the provider. */
  readonly kind: string
  /** How the provider compares redirect URIs; `none`: nothing is registered. */
  readonly redirect: 'none' | 'any-port' | 'exact'
  /** The provider's name of a redirect URI. */
  readonly redirectName: string
  readonly secret: 'required' | 'optional' | 'none'
}

/** How a provider leaves the standard, as data. Every key has a default that is the standard. */
export type Quirks = {
  /** How a client with a secret authenticates; by default in the body, unless metadata say otherwise. */
  readonly clientAuthentication?: 'client_secret_basic' | 'client_secret_post'
  /** The body of requests to the token and revocation endpoint; by default a form. */
  readonly requestBody?: 'json'
  /** Sent with every request to the token, revocation and userinfo endpoint. */
  readonly headers?: Readonly<Record<string, string>>
  /** Where the provider has no PKCE: the client secret and `state` protect the login. */
  readonly pkce?: false
  /** Revokes by a request with the access token as bearer token and no body. */
  readonly revocation?: 'bearer'
  /** How the userinfo endpoint is asked (by default with GET), and where its answer has the account. */
  readonly userinfo?: {
    readonly method?: 'POST'
    readonly json?: unknown
    readonly path?: readonly string[]
  }
  /** Path of the issuer that id tokens name, where it has the tenant of the user (claim `tid`). */
  readonly idTokenIssuer?: string
}

/** The defaults of a provider. Every fact has its source; gateway.yaml overrides each of them. */
export type ProviderTemplate = {
  readonly title: string
  /** Exactly what the provider sends as `iss` (RFC 9207) and in id tokens. */
  readonly issuer?: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** Only if it follows RFC 7009, or `quirks` say how it differs. */
  readonly revocationEndpoint?: string
  readonly userinfoEndpoint?: string
  /** RFC 8628, if the provider has a device flow. */
  readonly deviceAuthorizationEndpoint?: string
  readonly scopes: readonly string[]
  readonly scopeParameter?: string
  readonly scopeSeparator?: string
  /** Sent with every authorization request; at some providers they bring the refresh token. */
  readonly authorizationParameters?: Readonly<Record<string, string>>
  readonly redirectHost?: 'localhost'
  readonly dialect: DialectName
  /** Base of the API with which the dialect identifies accounts and revokes. */
  readonly apiUrl?: string
  readonly quirks?: Quirks
  readonly app: App
  /** Where a user can revoke the access by hand. */
  readonly permissionsPage?: string
  /** Where a user finds or creates the OAuth client, with its secret. */
  readonly clientPage: string
}

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
    // https://developers.google.com/identity/protocols/oauth2/native-app
    app: {
      create: 'create an OAuth client of the type desktop app',
      kind: 'OAuth client, **Desktop app**',
      redirect: 'none',
      redirectName: 'redirect URI',
      secret: 'required',
    },
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
    // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#loopback-redirect-urls
    app: {
      create: 'create an OAuth app',
      kind: 'OAuth app, or GitHub app',
      redirect: 'any-port',
      redirectName: 'callback URL',
      secret: 'required',
    },
    permissionsPage: 'https://github.com/settings/applications',
    clientPage: 'https://github.com/settings/developers',
  },
  slack: {
    title: 'Slack',
    // https://docs.slack.dev/authentication/installing-with-oauth: scopes of a user go in
    // `user_scope`, with commas; desktop redirects cannot request those of a bot.
    authorizationEndpoint: 'https://slack.com/oauth/v2/authorize',
    // https://docs.slack.dev/reference/methods/oauth.v2.access
    tokenEndpoint: 'https://slack.com/api/oauth.v2.access',
    scopes: ['chat:write', 'channels:read'],
    scopeParameter: 'user_scope',
    scopeSeparator: ',',
    dialect: 'slack',
    apiUrl: 'https://slack.com/api',
    // https://docs.slack.dev/authentication/using-pkce
    app: {
      create: 'create an app with PKCE',
      kind: 'app with PKCE',
      redirect: 'exact',
      redirectName: 'redirect URL',
      secret: 'none',
    },
    permissionsPage: 'https://slack.com/apps/manage',
    clientPage: 'https://api.slack.com/apps',
  },
  microsoft: {
    title: 'Microsoft',
    // `common` is for work, school and personal accounts, and its metadata name no issuer but a pattern:
    // https://learn.microsoft.com/entra/identity-platform/v2-protocols#endpoints
    // https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow
    authorizationEndpoint: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    tokenEndpoint: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    // https://learn.microsoft.com/entra/identity-platform/v2-oauth2-device-code
    deviceAuthorizationEndpoint: 'https://login.microsoftonline.com/common/oauth2/v2.0/devicecode',
    // https://learn.microsoft.com/entra/identity-platform/userinfo
    userinfoEndpoint: 'https://graph.microsoft.com/oidc/userinfo',
    // A refresh token comes with offline_access only:
    // https://learn.microsoft.com/entra/identity-platform/scopes-oidc#the-offline_access-scope
    scopes: ['openid', 'profile', 'email', 'offline_access', 'User.Read'],
    // https://learn.microsoft.com/entra/identity-platform/reply-url#localhost-exceptions
    redirectHost: 'localhost',
    dialect: 'standard',
    // https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference
    quirks: { idTokenIssuer: '/{tid}/v2.0' },
    // https://learn.microsoft.com/entra/identity-platform/scenario-desktop-app-registration
    app: {
      create: 'register an app for mobile and desktop',
      kind: 'public client, desktop',
      redirect: 'any-port',
      redirectName: 'redirect URI',
      secret: 'none',
    },
    permissionsPage: 'https://myaccount.microsoft.com/',
    clientPage: 'https://entra.microsoft.com/',
  },
  gitlab: {
    title: 'GitLab',
    // https://gitlab.com/.well-known/openid-configuration has all of these.
    issuer: 'https://gitlab.com',
    authorizationEndpoint: 'https://gitlab.com/oauth/authorize',
    tokenEndpoint: 'https://gitlab.com/oauth/token',
    // https://docs.gitlab.com/api/oauth2/#revoke-a-token
    revocationEndpoint: 'https://gitlab.com/oauth/revoke',
    userinfoEndpoint: 'https://gitlab.com/oauth/userinfo',
    // https://docs.gitlab.com/api/oauth2/#device-authorization-grant-flow
    deviceAuthorizationEndpoint: 'https://gitlab.com/oauth/authorize_device',
    // https://docs.gitlab.com/integration/oauth_provider/#view-all-authorized-applications
    scopes: ['openid', 'read_user', 'read_api'],
    dialect: 'standard',
    // https://docs.gitlab.com/api/oauth2/#authorization-code-with-proof-key-for-code-exchange-pkce
    app: {
      create: 'create an application that is not confidential',
      kind: 'application, not confidential',
      redirect: 'exact',
      redirectName: 'redirect URI',
      secret: 'optional',
    },
    permissionsPage: 'https://gitlab.com/-/user_settings/applications',
    clientPage: 'https://gitlab.com/-/user_settings/applications',
  },
  linear: {
    title: 'Linear',
    // https://linear.app/developers/oauth-2-0-authentication: scopes with commas, PKCE, and refresh tokens
    // that each refresh replaces. That a client with PKCE needs no secret, and that tokens are revoked as in
    // RFC 7009, is not verified.
    authorizationEndpoint: 'https://linear.app/oauth/authorize',
    tokenEndpoint: 'https://api.linear.app/oauth/token',
    revocationEndpoint: 'https://api.linear.app/oauth/revoke',
    scopes: ['read', 'write'],
    scopeSeparator: ',',
    // https://linear.app/developers/graphql
    userinfoEndpoint: 'https://api.linear.app/graphql',
    dialect: 'standard',
    quirks: {
      userinfo: {
        method: 'POST',
        json: { query: '{ viewer { id name email } }' },
        path: ['data', 'viewer'],
      },
    },
    app: {
      create: 'create an OAuth application',
      kind: 'OAuth application',
      redirect: 'exact',
      redirectName: 'callback URL',
      secret: 'optional',
    },
    clientPage: 'https://linear.app/settings/api/applications/new',
  },
  notion: {
    title: 'Notion',
    // https://developers.notion.com/docs/authorization: no scopes, since pages are chosen at the login.
    authorizationEndpoint: 'https://api.notion.com/v1/oauth/authorize',
    authorizationParameters: { owner: 'user' },
    scopes: [],
    // https://developers.notion.com/reference/create-a-token: Basic and JSON; the answer names no expiry.
    tokenEndpoint: 'https://api.notion.com/v1/oauth/token',
    // https://developers.notion.com/reference/revoke-token
    revocationEndpoint: 'https://api.notion.com/v1/oauth/revoke',
    // https://developers.notion.com/reference/get-self: the bot, and the person it belongs to.
    userinfoEndpoint: 'https://api.notion.com/v1/users/me',
    dialect: 'standard',
    quirks: {
      clientAuthentication: 'client_secret_basic',
      requestBody: 'json',
      // https://developers.notion.com/reference/versioning
      headers: { 'notion-version': '2022-06-28' },
      // Its documentation does not know PKCE. That it refuses a verifier is not verified.
      pkce: false,
      userinfo: { path: ['bot', 'owner', 'user'] },
    },
    // Not verified: that a public connection may have a redirect URI on this machine, by the name localhost.
    redirectHost: 'localhost',
    app: {
      create: 'create a public connection',
      kind: 'public connection',
      redirect: 'exact',
      redirectName: 'redirect URI',
      secret: 'required',
    },
    clientPage: 'https://www.notion.so/developers/connections',
  },
  atlassian: {
    title: 'Atlassian',
    // https://developer.atlassian.com/cloud/jira/platform/oauth-2-3lo-apps/: audience and prompt are required,
    // the token endpoint takes JSON, and offline_access brings a refresh token that each refresh replaces.
    // PKCE is not documented; what a server does not know, it ignores (RFC 6749 section 3.1).
    authorizationEndpoint: 'https://auth.atlassian.com/authorize',
    authorizationParameters: { audience: 'api.atlassian.com', prompt: 'consent' },
    tokenEndpoint: 'https://auth.atlassian.com/oauth/token',
    // https://developer.atlassian.com/cloud/confluence/user-identity-api-reference/
    userinfoEndpoint: 'https://api.atlassian.com/me',
    // https://developer.atlassian.com/cloud/jira/platform/scopes-for-oauth-2-3LO-and-forge-apps/
    scopes: ['read:me', 'read:jira-work', 'offline_access'],
    dialect: 'standard',
    quirks: { requestBody: 'json' },
    app: {
      create: 'create an OAuth 2.0 integration',
      kind: 'OAuth 2.0 (3LO) integration',
      redirect: 'exact',
      redirectName: 'callback URL',
      secret: 'required',
    },
    permissionsPage: 'https://id.atlassian.com/manage-profile/apps',
    clientPage: 'https://developer.atlassian.com/console/myapps/',
  },
  discord: {
    title: 'Discord',
    // https://docs.discord.com/developers/topics/oauth2; PKCE, and clients without a secret:
    // https://discord.com/.well-known/oauth-authorization-server
    authorizationEndpoint: 'https://discord.com/oauth2/authorize',
    tokenEndpoint: 'https://discord.com/api/oauth2/token',
    revocationEndpoint: 'https://discord.com/api/oauth2/token/revoke',
    // https://docs.discord.com/developers/resources/user#get-current-user
    userinfoEndpoint: 'https://discord.com/api/users/@me',
    scopes: ['identify', 'email'],
    dialect: 'standard',
    app: {
      create: 'create an application',
      kind: 'application',
      redirect: 'exact',
      redirectName: 'redirect',
      secret: 'optional',
    },
    clientPage: 'https://discord.com/developers/applications',
  },
  spotify: {
    title: 'Spotify',
    // https://developer.spotify.com/documentation/web-api/tutorials/code-pkce-flow; with a secret, Basic:
    // https://developer.spotify.com/documentation/web-api/tutorials/code-flow
    // A refresh may bring no new refresh token, and the old one stays valid then:
    // https://developer.spotify.com/documentation/web-api/tutorials/refreshing-tokens
    authorizationEndpoint: 'https://accounts.spotify.com/authorize',
    tokenEndpoint: 'https://accounts.spotify.com/api/token',
    // https://developer.spotify.com/documentation/web-api/reference/get-current-users-profile
    userinfoEndpoint: 'https://api.spotify.com/v1/me',
    // https://developer.spotify.com/documentation/web-api/concepts/scopes
    scopes: ['user-read-private', 'user-read-email'],
    dialect: 'standard',
    quirks: { clientAuthentication: 'client_secret_basic' },
    // https://developer.spotify.com/documentation/web-api/concepts/redirect_uri: any port of 127.0.0.1, and
    // no localhost.
    app: {
      create: 'create an app for the Web API',
      kind: 'app for the Web API',
      redirect: 'any-port',
      redirectName: 'redirect URI',
      secret: 'none',
    },
    permissionsPage: 'https://www.spotify.com/account/apps/',
    clientPage: 'https://developer.spotify.com/dashboard',
  },
  dropbox: {
    title: 'Dropbox',
    // https://dropbox.tech/developers/using-oauth-2-0-with-offline-access: a refresh token comes with offline.
    authorizationEndpoint: 'https://www.dropbox.com/oauth2/authorize',
    authorizationParameters: { token_access_type: 'offline' },
    // https://dropbox.tech/developers/pkce--what-and-why-
    tokenEndpoint: 'https://api.dropboxapi.com/oauth2/token',
    // https://www.dropbox.com/developers/documentation/http/documentation#auth-token-revoke
    revocationEndpoint: 'https://api.dropboxapi.com/2/auth/token/revoke',
    // https://www.dropbox.com/developers/documentation/http/documentation#users-get_current_account
    userinfoEndpoint: 'https://api.dropboxapi.com/2/users/get_current_account',
    // Without scopes a login gets all that the settings of the app allow:
    // https://developers.dropbox.com/oauth-guide
    scopes: [],
    dialect: 'standard',
    quirks: { revocation: 'bearer', userinfo: { method: 'POST' } },
    app: {
      create: 'create an app with scoped access',
      kind: 'app, scoped access',
      redirect: 'exact',
      redirectName: 'redirect URI',
      secret: 'none',
    },
    permissionsPage: 'https://www.dropbox.com/account/connected_apps',
    clientPage: 'https://www.dropbox.com/developers/apps',
  },
}
