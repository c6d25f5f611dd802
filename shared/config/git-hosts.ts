/*
 * Which hosts get the tokens of which provider for git.
 */

/** An origin that may get a provider's token: exactly this protocol, host and port. */
export type GitHost = {
  readonly provider: string
  readonly origin: string
  /** True for one of `git_hosts`. */
  readonly isNamed?: true
}

/** A credential request of git (git-credential(1), "input/output format"). */
export type GitQuestion = {
  readonly protocol: string
  readonly host: string
  readonly username: string | undefined
}

const builtIn = 'https://github.com/login/oauth/access_token'

/** Gists are repositories of the same account on their own host. */
const gitHubOrigins = ['https://github.com', 'https://gist.github.com']

/**
 * The origins that get a provider's tokens. Of every provider those of its `git_hosts`; of github and of other
 * providers with its dialect also the host of the token endpoint in gateway.yaml, which is the server that a login
 * belongs to. Plain http only on loopback; where github itself logs in on loopback (a proxy, a test), its tokens are still for github.com.
 */
export const gitHosts = (gateway: unknown): GitHost[] => {
  const providers = getValue(gateway, 'providers')
  const names = typeof providers === 'object' ? Object.keys(providers ?? {}) : []
  const textOf = (name: string, key: string): string | undefined => {
    const text = getValue(getValue(providers, name), key)
    return typeof text === 'string' && text !== '' ? text : undefined
  }
  const speakers = names.filter((name) => textOf(name, 'dialect') === 'github')
  const named = names.flatMap((provider) =>
    toList(getValue(getValue(providers, provider), 'git_hosts')).flatMap((host) =>
      toOrigins(host).map((origin) => ({ provider, origin, isNamed: true }) as const),
    ),
  )
  const ofDialect = [...new Set(['github', ...speakers])].flatMap((provider) => {
    const address =
      textOf(provider, 'token_endpoint') ??
      textOf(provider, 'issuer') ??
      (provider === 'github' ? builtIn : '')
    if (!URL.canParse(address)) return []
    const { origin, protocol, hostname } = new URL(address)
    if (!(protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname)))) return []
    // A login on loopback stands for github.com.
    const isStandIn = provider === 'github' && isLoopback(hostname)
    const isGitHub = isStandIn || origin === gitHubOrigins[0]
    const origins = new Set([origin, ...(isGitHub ? gitHubOrigins : [])])
    return [...origins].map((one) => ({ provider, origin: one }))
  })
  return [...named, ...ofDialect]
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Of a host such as `git.corp.example:8443`: https, and on loopback http too. */
const toOrigins = (host: unknown): string[] => {
  if (typeof host !== 'string' || !hostForm.test(host) || !URL.canParse(`https://${host}`))
    return []
  const { origin, hostname } = new URL(`https://${host}`)
  return isLoopback(hostname) ? [origin, new URL(`http://${host}`).origin] : [origin]
}

const hostForm = /^([\w.-]+|\[[\da-f:]+\])(:\d{1,5})?$/i

/** The known host of this request, whose provider has the token for it, or undefined. */
export const hostAt = (
  { protocol, host }: GitQuestion,
  hosts: readonly GitHost[],
): GitHost | undefined => {
  // A plain host only: a URL could carry a user name or a path.
  if (!/^(https?)$/.test(protocol) || !hostForm.test(host)) return undefined
  const address = `${protocol}://${host}`
  if (!URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return hosts.find((known) => known.origin === origin)
}

const isLoopback = (hostname: string): boolean =>
  /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname)

const getValue = (map: unknown, key: string): unknown =>
  typeof map === 'object' && map !== null && Object.hasOwn(map, key)
    ? (map as Record<string, unknown>)[key]
    : undefined
