import { type Warning, warn } from '../config/warning.ts'
import { extraCertificatesPath, readExtraCertificates } from './certificates.ts'
import { proxyForm } from './faults.ts'
import { readProxy, readVariable } from './proxy.ts'

/** The variables of proxies and certificates that most programs read, in both cases where they do. */
const networkNames = [
  'HTTP_PROXY',
  'http_proxy',
  'HTTPS_PROXY',
  'https_proxy',
  'NO_PROXY',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
]

/** Those of them that are set, for a program that has another working folder. */
export const networkVariables = (env: NodeJS.ProcessEnv): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const name of networkNames) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value !== undefined && value !== '') found[name] = value
  }
  const path = extraCertificatesPath(found)
  return path === undefined ? found : { ...found, NODE_EXTRA_CA_CERTS: path }
}

/** The same without a proxy that has a password, for files that others can read. */
export const publicVariables = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    Object.entries(networkVariables(env)).filter(
      ([name, value]) => !hasPassword(name, value) && !/[\u0000-\u001f\u007f]/.test(value),
    ),
  )

/** The variables with the password of a proxy. */
export const listPasswordVariables = (env: NodeJS.ProcessEnv): string[] =>
  Object.entries(networkVariables(env)).flatMap(([name, value]) =>
    hasPassword(name, value) ? [name] : [],
  )

/** Also for a URL that cannot be parsed. */
const hasPassword = (name: string, value: string): boolean =>
  /^https?_proxy$/i.test(name) && value.includes('@')

const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY'] as const

/** The names to show in place of the passwords of proxies, which a program may print. */
export const proxyPasswords = (env: NodeJS.ProcessEnv): Map<string, string> => {
  const found = new Map<string, string>()
  for (const name of proxyNames) {
    const proxy = readProxy(name, env)
    if (!proxy || 'isUnusable' in proxy || proxy.url.password === '') continue
    const { username, password } = proxy.url
    for (const secret of [password, decodeURIComponent(password), `${username}:${password}@`])
      // A shorter one is part of other words.
      if (secret.length >= 8) found.set(secret, `password in ${proxy.variable}`)
  }
  return found
}

/** One line about the proxies and certificates in use, without a password. Undefined without any. */
export const describeNetwork = (env: NodeJS.ProcessEnv): string | undefined => {
  const proxies = proxyNames.flatMap((name) => {
    const proxy = readProxy(name, env)
    return proxy && !('isUnusable' in proxy) ? [`${proxy.place} (${proxy.variable})`] : []
  })
  const except = readVariable('NO_PROXY', env)?.value
  const path = extraCertificatesPath(env)
  const parts = [
    ...(proxies.length > 0 ? [`through the proxy ${proxies.join(' and ')}`] : []),
    ...(proxies.length > 0 && except !== undefined ? [`but not to ${except}`] : []),
    ...(path === undefined ? [] : [`with the certificates in ${path}`]),
  ]
  return parts.length === 0 ? undefined : parts.join(', ')
}

/** The variables of the network that cannot be used. No value is shown: a proxy's URL has its password. */
export const networkWarnings = (env: NodeJS.ProcessEnv): Warning[] => {
  const extra = readExtraCertificates(env)
  return [
    ...proxyNames.flatMap((name) => {
      const proxy = readProxy(name, env)
      if (!proxy || !('isUnusable' in proxy)) return []
      return warn(
        'proxy-unusable',
        `${proxy.variable} is not the URL of an HTTP proxy: requests to other machines fail`,
        `${proxyForm}: doorward help networks`,
      )
    }),
    ...(extra && 'problem' in extra
      ? warn(
          'ca-file-unusable',
          `NODE_EXTRA_CA_CERTS: ${extra.path} ${extra.problem}`,
          'name a file with certificates in PEM format: doorward help networks',
        )
      : []),
  ]
}
