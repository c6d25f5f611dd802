import type { DialectName } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Provider } from './providers.ts'

/**
 * The error of a login that nobody has given a client: what to make where, with which redirect URI, and
 * the command that then works. `callbackPort` is 0 or left out where any free port is taken.
 */
export const clientUnknown = (provider: Provider, callbackPort = 0): DoorwardError => {
  const { name, title, dialect, clientPage } = provider
  const { app, needsSecret } = apps[dialect]
  const where = clientPage ?? title
  const make = `${app(redirectUriOf(provider, callbackPort))} at ${where}`
  const secret = needsSecret ? ' --client-secret-stdin' : ''
  return new DoorwardError(
    'client-unknown',
    `no OAuth client is known for ${name}: a login needs one of your own`,
    { hint: `${make}, then: doorward oauth login ${name} --client-id ID${secret}` },
  )
}

const redirectUriOf = ({ redirectHost, callbackPort }: Provider, port: number): string => {
  const { origin } = new URL(`http://${redirectHost}:${callbackPort ?? port}`)
  return `${origin.replace(/:0$/, '')}/callback`
}

type App = {
  readonly app: (redirectUri: string) => string
  /** Asked for by every login, PKCE or not. */
  readonly needsSecret: boolean
}

const apps: Readonly<Record<DialectName, App>> = {
  standard: {
    app: (redirectUri) => `register an app (native, public) with the redirect URI ${redirectUri}`,
    needsSecret: false,
  },
  // https://developers.google.com/identity/protocols/oauth2/native-app
  google: {
    app: () => 'make an OAuth client of the type desktop app',
    needsSecret: true,
  },
  // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#loopback-redirect-urls
  github: {
    app: (redirectUri) => {
      const url = new URL(redirectUri)
      url.port = ''
      return `make an OAuth app with the callback URL ${url.href}`
    },
    needsSecret: true,
  },
  // https://docs.slack.dev/authentication/using-pkce
  slack: {
    app: (redirectUri) => `make an app with PKCE and the redirect URL ${redirectUri}`,
    needsSecret: false,
  },
}
