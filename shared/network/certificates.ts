import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import tls from 'node:tls'
import { expandTilde, systemReason } from '../home/home.ts'

/** The file in `NODE_EXTRA_CA_CERTS`, with its certificates or the reason why it cannot be used. */
export type ExtraCertificates = { readonly path: string } & (
  { readonly certificates: readonly string[] } | { readonly problem: string }
)

/** The absolute path in `NODE_EXTRA_CA_CERTS`; `~` is allowed, as `.env` is read by no shell. */
export const extraCertificatesPath = (env: NodeJS.ProcessEnv): string | undefined => {
  const path = env['NODE_EXTRA_CA_CERTS']?.trim()
  return path ? resolve(expandTilde(path)) : undefined
}

/** Reads the file in `NODE_EXTRA_CA_CERTS`. Undefined when the variable is unset. */
export const readExtraCertificates = (env: NodeJS.ProcessEnv): ExtraCertificates | undefined => {
  const path = extraCertificatesPath(env)
  if (path === undefined) return undefined
  try {
    const text = readFileSync(path, 'utf8')
    const found = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
    if (found.length === 0) return { path, problem: 'has no certificate in PEM format' }
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
