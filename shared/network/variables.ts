import { type Warning, warn } from '../config/warning.ts'
import { proxyForm } from './faults.ts'
import { findProxy, readProxy, readVariable } from './proxy.ts'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import tls from 'node:tls'
import { expandTilde, systemReason } from '../home/home.ts'

/** The variables with a file of certificates: of Node and doorward, and of OpenSSL and git. */
const certificateNames = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'] as const

/** The file in `NODE_EXTRA_CA_CERTS`, with its certificates or the reason why it cannot be used. */
type ExtraCertificates = { readonly path: string } & (
  { readonly certificates: readonly string[] } | { readonly problem: string }
)

/** The absolute path in a variable; `~` is allowed, as `.env` is read by no shell. */
export const certificateFile = (
  name: (typeof certificateNames)[number],
  env: NodeJS.ProcessEnv,
): string | undefined => {
  const path = env[name]?.trim()
  return path ? resolve(expandTilde(path)) : undefined
}

/** Reads the file in `NODE_EXTRA_CA_CERTS`. Undefined when the variable is unset. */
export const readExtraCertificates = (env: NodeJS.ProcessEnv): ExtraCertificates | undefined => {
  const path = certificateFile('NODE_EXTRA_CA_CERTS', env)
  if (path === undefined) return undefined
  try {
    const text = readFileSync(path, 'utf8')
    const found = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
    if (found.length === 0) return { path, problem: noCertificate }
    return { path, certificates: found.map((one) => new X509Certificate(one).toString()) }
  } catch (error) {
    const isRead = error instanceof Error && 'syscall' in error
    return {
      path,
      problem: isRead
        ? `cannot be read: ${systemReason(error)}`
        : 'has a certificate that is damaged',
    }
  }
}

const noCertificate = 'has no certificate in PEM format'

/** Why the file in `SSL_CERT_FILE` cannot be used. OpenSSL reads more forms than Node. */
const findFault = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8').includes('CERTIFICATE-----') ? undefined : noCertificate
  } catch (error) {
    return `cannot be read: ${systemReason(error)}`
  }
}

/**
 * The certificates to trust: Node's, the system's where Node can read them (22.15), and those of
 * `NODE_EXTRA_CA_CERTS`, which Node itself reads only from the environment of its start. Undefined where
 * Node's own are all. A file that cannot be used is left out; `networkWarnings` reports it.
 */
export const createTrust = (env: NodeJS.ProcessEnv): tls.SecureContext | undefined => {
  const { getCACertificates: list } = tls as {
    readonly getCACertificates?: (type: 'default' | 'system') => readonly string[]
  }
  const known = new Set(list?.('default') ?? tls.rootCertificates)
  const count = known.size
  const extra = readExtraCertificates(env)
  const more = extra && 'certificates' in extra ? extra.certificates : []
  for (const one of [...(list?.('system') ?? []), ...more]) known.add(one)
  return known.size === count ? undefined : tls.createSecureContext({ ca: [...known] })
}

/** The variables of proxies and certificates that most programs read, in both cases where they do. */
const networkNames = [
  'HTTP_PROXY',
  'http_proxy',
  'HTTPS_PROXY',
  'https_proxy',
  'NO_PROXY',
  'no_proxy',
  ...certificateNames,
]

/** Those of them that are set, for a program that has another working folder. */
export const networkVariables = (env: NodeJS.ProcessEnv): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const name of networkNames) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value !== undefined && value !== '') found[name] = value
  }
  for (const name of certificateNames) {
    const path = certificateFile(name, found)
    if (path !== undefined) found[name] = path
  }
  return found
}

/** Those of them by which curl, and git with it, reaches a URL by the proxy that doorward uses, or by none. */
export const curlVariables = (url: URL, env: NodeJS.ProcessEnv): Record<string, string> => {
  const proxy = findProxy(url, env)
  const all = networkVariables(env)
  // SOCKS, which curl can use.
  if (proxy && 'isUnusable' in proxy) return all
  const others = Object.entries(all).filter(([name]) => !/_proxy$/i.test(name))
  return {
    ...Object.fromEntries(others),
    ...(proxy && { [`${url.protocol.slice(0, -1)}_proxy`]: proxy.url.href }),
  }
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
  const path = certificateFile('NODE_EXTRA_CA_CERTS', env)
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
  const file = certificateFile('SSL_CERT_FILE', env)
  const fault = file === undefined ? undefined : findFault(file)
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
      ? warnOfFile(`NODE_EXTRA_CA_CERTS: ${extra.path} ${extra.problem}`)
      : []),
    ...(fault === undefined ? [] : warnOfFile(`SSL_CERT_FILE: ${file} ${fault}`)),
  ]
}

const warnOfFile = (detail: string): Warning[] =>
  warn(
    'ca-file-unusable',
    detail,
    'name a file with certificates in PEM format: doorward help networks',
  )
