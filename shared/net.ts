/** The host of a URL for a socket: an IPv6 address without its brackets (RFC 3986 section 3.2.2). */
export const bareHost = (hostname: string): string => hostname.replaceAll(/^\[|\]$/g, '')

/** Adds a path to a base URL and keeps its query, such as the `api-version` of Azure. */
export const joinUrl = (base: string, path: string): URL => {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return url
}

/** True for an address that is safe to open in a browser: https, or http on loopback. */
export const isSafeToOpen = (address: string): boolean => {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(hostname))
  )
}

/**
 * True for Node's code of an untrusted certificate (nodejs.org/api/tls.html, "X509 certificate error codes",
 * and `ERR_TLS_…`). Such an error is not transient.
 */
export const isCertificateError = (code: string): boolean =>
  /CERT|SIGNED|SIGNATURE|ERR_TLS|UNABLE_TO|HOSTNAME_MISMATCH/.test(code)

/** True for a URL of this machine, where plain http is safe. */
export const isLoopbackUrl = (url: string): boolean =>
  /^(127(\.\d{1,3}){3}|\[::1\]|localhost)$/.test(new URL(url).hostname)

/** True for the code of Node or OpenSSL when a server answers a TLS handshake with something else. */
export const isNotTls = (code: string): boolean =>
  code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER'

/** Characters. */
const longestUrl = 2048

const plainPage = /^https:\/\/(?:[a-z\d-]+\.)+[a-z]{2,}\/[\w/-]*$/

/** A page that a browser may open; undefined for any other text. */
export const toPageUrl = (text: string): string | undefined => {
  // The URL of nearly every page, which stays as it is.
  if (text.length <= longestUrl && plainPage.test(text)) return text
  if (text.length > longestUrl || !text.startsWith('https://') || !URL.canParse(text))
    return undefined
  const { href, username, password } = new URL(text)
  return username + password === '' ? href : undefined
}
