import { type Warning, warn } from '../config/warning.ts'
import { readExtraCertificates } from './certificates.ts'
import { proxyForm } from './faults.ts'
import { readProxy } from './proxy.ts'

/** The variables of the network that cannot be used. No value is shown: a proxy's URL has its password. */
export const networkWarnings = (env: NodeJS.ProcessEnv): Warning[] => {
  const extra = readExtraCertificates(env)
  return [
    ...(['HTTP_PROXY', 'HTTPS_PROXY'] as const).flatMap((name) => {
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
