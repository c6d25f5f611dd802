/**
 * True for what Node says of a certificate that cannot be trusted (nodejs.org/api/tls.html, "X509 certificate
 * error codes", and `ERR_TLS_…`): no network is at fault, and it will not be better in a minute.
 */
export const isCertificateFault = (code: string): boolean =>
  /CERT|SIGNED|SIGNATURE|ERR_TLS|UNABLE_TO|HOSTNAME_MISMATCH/.test(code)

/** True for what Node, or OpenSSL by it, says of a server that answers a TLS handshake with something else. */
export const isWithoutTls = (code: string): boolean =>
  code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER'
