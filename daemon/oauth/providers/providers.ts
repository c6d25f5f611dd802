import { parseLogin, providerNameForm } from '../../../shared/config/name-forms.ts'
import type { DialectName, Gateway, ProviderEntry } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { didYouMean } from '../../../shared/text.ts'
import { type App, providerTemplates, type ProviderTemplate, type Quirks } from './templates.ts'

/** A provider: a built-in template, an entry of gateway.yaml, or an entry that overrides a template. */
export type Provider = {
  /** That of the login: `github`, or `github@work` for an account with a name. */
  readonly name: string
  /** The provider's own name, and its key in gateway.yaml: `github` for both. */
  readonly key: string
  readonly title: string
  /** `iss` is compared with it, and metadata are fetched from it; without it neither happens. */
  readonly issuer?: string
  readonly authorizationEndpoint?: string
  readonly tokenEndpoint?: string
  readonly revocationEndpoint?: string
  readonly userinfoEndpoint?: string
  readonly deviceAuthorizationEndpoint?: string
  readonly dialect: DialectName
  /** Base of the dialect's API, without a slash at the end; undefined if not known. */
  readonly apiUrl?: string
  readonly scopes: readonly string[]
  readonly scopeParameter: string
  readonly scopeSeparator: string
  readonly authorizationParameters: Readonly<Record<string, string>>
  readonly redirectHost: RedirectHost
  readonly redirectPath: string
  readonly clientId?: string
  readonly clientSecretEnv?: string
  readonly tokenAuth?: ProviderEntry['token_auth']
  readonly quirks: Quirks
  readonly app: App
  readonly permissionsPage?: string
  readonly clientPage?: string
}

export type RedirectHost = '127.0.0.1' | 'localhost'

/** The address to which the browser returns, without the port. */
export type RedirectTarget = Pick<Provider, 'redirectHost' | 'redirectPath'>

/** True for a valid name of a provider. */
export const isProviderName = (name: string): boolean => providerNameForm.test(name)

/** The names of all providers, built-in and configured, sorted. */
export const providerNames = (gateway: Gateway): string[] =>
  [...new Set([...Object.keys(providerTemplates), ...Object.keys(gateway.providers)])].sort()

/**
 * The provider of a login. Throws `provider-unknown`, or `provider-misconfigured` when neither an
 * issuer nor both endpoints say where to log in.
 */
export const findProvider = (name: string, gateway: Gateway): Provider => {
  const { provider: key, account } = parseLogin(name) ?? { provider: name }
  const template = ownValue(providerTemplates, key)
  const entry = ownValue(gateway.providers, key)
  if (!template && !entry) throw unknownProvider(key, gateway)
  const merged = mergeProvider(key, template, entry ?? {})
  const provider = account === undefined ? merged : withAccount(merged, name)
  if (!provider.issuer && !(provider.authorizationEndpoint && provider.tokenEndpoint))
    throw new DoorwardError(
      'provider-misconfigured',
      `provider ${key} has no issuer, and not both an authorization and a token endpoint`,
      { hint: `set providers.${key}.issuer in gateway.yaml, or both endpoints` },
    )
  return provider
}

/**
 * The same provider for an account with a name. The browser is often logged in with another account, so
 * that the page must offer a choice. The parameter:
 * https://developers.google.com/identity/protocols/oauth2/web-server#creatingclient
 * https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
 */
const withAccount = (provider: Provider, name: string): Provider => {
  const { dialect, authorizationParameters } = provider
  if (dialect !== 'google' && dialect !== 'github') return { ...provider, name }
  const prompt = [authorizationParameters['prompt'], 'select_account'].filter(Boolean).join(' ')
  return { ...provider, name, authorizationParameters: { ...authorizationParameters, prompt } }
}

/**
 * Overrides a template with an entry of gateway.yaml. An entry with its own issuer uses no endpoint of the
 * template. Another authorization endpoint means another issuer; and the tokens of another token endpoint
 * must not be sent to the template's other endpoints. How scopes are requested depends on the dialect, not
 * on the name: a second Slack workspace needs `user_scope` too.
 */
const mergeProvider = (
  name: string,
  template: Partial<ProviderTemplate> | undefined,
  entry: ProviderEntry,
): Provider => {
  const main = entry.issuer === undefined ? template : undefined
  const sameHost = entry.token_endpoint === undefined ? main : undefined
  const dialect = entry.dialect ?? template?.dialect ?? 'standard'
  const requesting = dialect === 'standard' ? template : providerTemplates[dialect]
  return {
    name,
    key: name,
    title: template?.title ?? name,
    issuer: entry.issuer ?? (entry.authorization_endpoint ? undefined : template?.issuer),
    authorizationEndpoint: entry.authorization_endpoint ?? main?.authorizationEndpoint,
    tokenEndpoint: entry.token_endpoint ?? main?.tokenEndpoint,
    revocationEndpoint: entry.revocation_endpoint ?? sameHost?.revocationEndpoint,
    userinfoEndpoint: entry.userinfo_endpoint ?? sameHost?.userinfoEndpoint,
    deviceAuthorizationEndpoint:
      entry.device_authorization_endpoint ?? sameHost?.deviceAuthorizationEndpoint,
    dialect,
    apiUrl: entry.api_url ?? sameHost?.apiUrl,
    scopes: entry.scopes ?? template?.scopes ?? [],
    scopeParameter: requesting?.scopeParameter ?? 'scope',
    scopeSeparator: requesting?.scopeSeparator ?? ' ',
    authorizationParameters: requesting?.authorizationParameters ?? {},
    redirectHost: entry.redirect_host ?? template?.redirectHost ?? '127.0.0.1',
    redirectPath: entry.redirect_path ?? '/callback',
    clientId: entry.client_id,
    clientSecretEnv: entry.client_secret_env,
    tokenAuth: entry.token_auth,
    quirks: {
      ...(entry.issuer === undefined && requesting?.quirks),
      ...(entry.token_auth && {
        clientAuthentication: `client_secret_${entry.token_auth}` as const,
      }),
    },
    app: requesting?.app ?? ownApp,
    permissionsPage: template?.permissionsPage,
    clientPage: template?.clientPage,
  }
}

const ownApp: App = {
  create: 'register an app (native, public)',
  kind: 'native app',
  redirect: 'exact',
  redirectName: 'redirect URI',
  secret: 'optional',
}

const ownValue = <Value>(
  record: Readonly<Partial<Record<string, Value>>>,
  name: string,
): Value | undefined => (Object.hasOwn(record, name) ? record[name] : undefined)

const unknownProvider = (name: string, gateway: Gateway): DoorwardError => {
  const known = providerNames(gateway)
  const shown = isProviderName(name) ? ` ${name}` : ''
  const near = isProviderName(name) ? didYouMean(name, known) : undefined
  // A similar name may still be another provider: gitlab is only two letters from github.
  return new DoorwardError('provider-unknown', `there is no provider${shown}`, {
    hint: `${near ?? `known: ${known.join(', ')};`} add others under providers: in gateway.yaml`,
  })
}
