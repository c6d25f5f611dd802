import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import tls from 'node:tls'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { certificateFile, readExtraCertificates } from '../../shared/network/variables.ts'

/** Where distributions and macOS keep the certificates of the system in one file. */
const systemFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

export const bundleName = 'git-certificates.pem'

/**
 * Finds the file of certificates for git, which takes one in place of those of the system: with
 * `NODE_EXTRA_CA_CERTS` a bundle of both in this folder, written again when a source has changed. Undefined where
 * git uses its own. A file that cannot be used is left out, or named by git; `networkWarnings` reports it.
 */
export const createCertificates = (
  env: NodeJS.ProcessEnv,
  folder: string,
): (() => Promise<string | undefined>) => {
  let written = ''
  return async () => {
    const chosen = certificateFile('SSL_CERT_FILE', env)
    const extra = certificateFile('NODE_EXTRA_CA_CERTS', env)
    if (extra === undefined) return chosen
    const base = chosen ?? (await findSystemFile())
    const bundle = join(folder, bundleName)
    const describe = async () =>
      (await Promise.all([base, extra, bundle].map(describeFile))).join('\n')
    if (written !== '' && written === (await describe())) return bundle
    const more = readExtraCertificates(env)
    if (!more || 'problem' in more) return chosen
    const known = base === undefined ? nodeCertificates() : await readFile(base, 'utf8').catch(none)
    if (known === undefined) return chosen
    const content = `${known}\n${more.certificates.join('')}`
    if (content !== (await readFile(bundle, 'utf8').catch(none)))
      await writeFileAtomic(bundle, content)
    written = await describe()
    return bundle
  }
}

const none = (): undefined => undefined

const findSystemFile = async (): Promise<string | undefined> => {
  for (const path of systemFiles) if (await stat(path).catch(none)) return path
  return undefined
}

/** Where the system has no such file. */
const nodeCertificates = (): string => {
  const { getCACertificates: list } = tls as {
    readonly getCACertificates?: (type: 'system') => readonly string[]
  }
  const system = list?.('system') ?? []
  return (system.length > 0 ? system : tls.rootCertificates).join('\n')
}

/** What changes with the content of a file. */
const describeFile = async (path: string | undefined): Promise<string> => {
  if (path === undefined) return ''
  const found = await stat(path).catch(none)
  return found ? `${path} ${found.ino} ${found.size} ${found.mtimeMs}` : ''
}
