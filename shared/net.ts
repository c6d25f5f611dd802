/** The host of a URL as a socket takes it: an IPv6 address without its brackets (RFC 3986 section 3.2.2). */
export const bareHost = (hostname: string): string => hostname.replaceAll(/^\[|\]$/g, '')

/** The URL of a path under a base, whose query stays behind it: Azure has its `api-version` there. */
export const joinUrl = (base: string, path: string): URL => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return url
}

/** True for an address that a person's browser may be sent to: https, or http on loopback. */
export const isSafeToOpen = (address: string): boolean => {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname))
  )
}

/**
 * True for what Node says of a certificate that cannot be trusted (nodejs.org/api/tls.html, "X509 certificate
 * error codes", and `ERR_TLS_…`): no network is at fault, and it will not be better in a minute.
 */
export const isCertificateError = (code: string): boolean =>
  /CERT|SIGNED|SIGNATURE|ERR_TLS|UNABLE_TO|HOSTNAME_MISMATCH/.test(code)

/** True for what Node, or OpenSSL by it, says of a server that answers a TLS handshake with something else. */
export const isNotTls = (code: string): boolean =>
  code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER'
