import { systemCode } from '../errors.ts'
import { isCertificateError, isNotTls } from '../net.ts'
import type { Proxy, UnusableProxy } from './proxy.ts'

/** A proxy prevented a request, which reached no server. The message contains no password. */
export class ProxyError extends Error {
  readonly hint: string
  /** Another attempt would fail as well. */
  readonly isPermanent: boolean

  constructor(message: string, hint: string, isPermanent = false) {
    super(message)
    this.hint = `${hint}: doorward help networks`
    this.isPermanent = isPermanent
  }
}

export const unusableProxy = ({ variable }: UnusableProxy): ProxyError =>
  new ProxyError(`${variable} is not the URL of an HTTP proxy`, proxyForm, true)

/** How a variable of a proxy is written. */
export const proxyForm =
  'write it like http://user:password@host:port, with %23 for a # in the password'

/** The meaning of the status that a proxy answers instead of a connection to `target`, a host and a port. */
export const refusedByProxy = (
  { place, variable, url }: Proxy,
  status: number,
  target: string,
): ProxyError => {
  // tinyproxy answers a wrong password with 401.
  if (status === 407 || status === 401)
    return url.username === ''
      ? new ProxyError(
          `the proxy ${place} asks for a password (${status})`,
          `write it into ${variable} in .env, like http://user:password@${place}`,
          true,
        )
      : new ProxyError(
          `the proxy ${place} does not accept the user and password in ${variable} (${status})`,
          'correct them; a proxy that only accepts Windows logins needs a relay such as px or cntlm',
          true,
        )
  if (status >= 500)
    return new ProxyError(
      `the proxy ${place} cannot reach ${target} (${status})`,
      `if ${target} is inside your network, name it in NO_PROXY`,
    )
  return new ProxyError(
    `the proxy ${place} refuses connections to ${target} (${status})`,
    'ask who runs it to allow this host, or name the host in NO_PROXY',
    status !== 429,
  )
}

/** A connection to the proxy, or the proxy's answer, that failed. */
export const proxyFailed = ({ place, variable }: Proxy, error: unknown): ProxyError => {
  const code = systemCode(error) ?? ''
  if (isCertificateError(code)) {
    const { what, hint } = describeCertificate(code)
    return new ProxyError(`the certificate of the proxy ${place} ${what}`, hint, true)
  }
  if (isNotTls(code))
    return new ProxyError(`the proxy ${place} does not speak TLS`, `use http:// in ${variable}`)
  if (code.startsWith('HPE_'))
    return new ProxyError(
      `the proxy ${place} does not answer like an HTTP proxy`,
      `check host and port in ${variable}`,
    )
  if (code === 'ECONNRESET' || code === 'EPIPE')
    return new ProxyError(
      `the proxy ${place} closed the connection`,
      `check ${variable}, and ask who runs the proxy`,
    )
  const shown = /^[A-Z0-9_]{1,50}$/.test(code) ? ` (${code})` : ''
  return new ProxyError(
    `the proxy ${place} cannot be reached${shown}`,
    `check ${variable} and the network; where there is no proxy, unset it`,
  )
}

/** A proxy that took the connection and did not answer before the time was over. */
export const silentProxy = ({ place, variable }: Proxy): ProxyError =>
  new ProxyError(
    `the proxy ${place} did not answer in time`,
    `check host and port in ${variable}, and ask who runs the proxy`,
  )

/** A TLS handshake with `target` through a proxy that failed. The same error where TLS is not the cause. */
export const failedBehindProxy = ({ place }: Proxy, error: unknown, target: string): unknown => {
  const code = systemCode(error) ?? ''
  if (code === 'ABORT_ERR')
    return new ProxyError(
      `the proxy ${place} connected to ${target}, and then nothing came`,
      'ask who runs the proxy whether it allows this host',
    )
  if (isNotTls(code))
    return new ProxyError(
      `the proxy ${place} answers in place of ${target}`,
      'a page of the network may wait for a login in the browser; else ask who runs the proxy',
    )
  return code === 'ECONNRESET'
    ? new ProxyError(
        `the proxy ${place} closed the connection to ${target}`,
        'ask who runs it to allow this host, or name the host in NO_PROXY',
      )
    : error
}

/** Why a server could not be reached, for people. `isPermanent`: another attempt would fail as well. */
export const describeUnreachable = (
  server: string,
  error: unknown,
): { readonly message: string; readonly hint: string; readonly isPermanent: boolean } => {
  if (error instanceof ProxyError) {
    const { message, hint, isPermanent } = error
    return { message: `${server} cannot be reached: ${message}`, hint, isPermanent }
  }
  const code = systemCode(error) ?? ''
  if (isCertificateError(code)) {
    const { what, hint } = describeCertificate(code)
    return { message: `the certificate of ${server} ${what}`, hint, isPermanent: true }
  }
  const shown = /^[A-Z0-9_]{1,50}$/.test(code) ? ` (${code})` : ''
  if (isNotTls(code))
    return {
      message: `${server} does not speak TLS${shown}`,
      hint: 'check its URL: https:// needs a port with TLS',
      isPermanent: true,
    }
  const isClosed = code === 'ECONNRESET' || code === 'EPIPE'
  return {
    message: `${server} ${isClosed ? 'closed the connection' : 'cannot be reached'}${shown}`,
    hint: reachHints[code] ?? 'check the network',
    isPermanent: false,
  }
}

const reachHints: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at its address',
  ENOTFOUND: 'there is no such host',
  ERR_INVALID_CHAR: 'a header has an invalid character',
  HPE_INVALID_CONSTANT: 'it does not speak HTTP',
}

/** The fault of a certificate, to follow the name of its server, and the way out. */
export const describeCertificate = (
  code: string,
): { readonly what: string; readonly hint: string } => {
  if (code === 'CERT_HAS_EXPIRED')
    return {
      what: `has expired (${code})`,
      hint: 'it must be renewed there, unless the clock of this machine is wrong; NODE_EXTRA_CA_CERTS does not help: doorward help networks',
    }
  const what = `is not trusted (${code})`
  return /SELF_SIGNED|UNABLE_TO/.test(code)
    ? {
        what,
        hint: 'if a CA of your company signed it, name the file of that CA in NODE_EXTRA_CA_CERTS: doorward help networks',
      }
    : { what, hint: 'check the URL: the certificate must be valid for its host' }
}
