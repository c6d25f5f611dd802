import { bareHost } from '../net.ts'
import { isLoopbackUrl } from '../config/schema.ts'

/*
 * Parsers for the variables of targets. Each returns undefined for an invalid value. The text never appears
 * in a message: it contains a password or a token.
 */

/** A URL that is a secret, such as that of an incoming webhook: https, or http on loopback. */
export const parseSecretUrl = (text: string): URL | undefined => {
  const trimmed = text.trim()
  if (!URL.canParse(trimmed)) return undefined
  const url = new URL(trimmed)
  const isSecure =
    url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackUrl(url.href))
  const isPlain = url.username === '' && url.password === '' && url.hash === ''
  return isSecure && isPlain ? url : undefined
}

/** A mail server, from `smtps://user:password@host:465` or `smtp://…:587`. */
export type SmtpServer = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte; otherwise STARTTLS, which is optional for a server on this machine. */
  readonly isTls: boolean
  readonly isLoopback: boolean
  readonly login?: { readonly user: string; readonly password: string }
}

/** Parses the URL of a mail server (RFC 8314: port 465 is TLS, 587 STARTTLS). */
export const parseSmtpServer = (text: string): SmtpServer | undefined => {
  const trimmed = text.trim()
  if (!/^smtps?:\/\//i.test(trimmed) || !URL.canParse(trimmed)) return undefined
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(trimmed)
  const isTls = protocol === 'smtps:'
  const [user, pass] = [decode(username), decode(password)]
  if (!/^([A-Za-z0-9.-]+|\[[0-9a-f:.]+\])$/i.test(hostname)) return undefined
  if (user === undefined || pass === undefined) return undefined
  if (pathname.length > 1 || search !== '' || hash !== '') return undefined
  return {
    host: bareHost(hostname),
    port: port === '' ? (isTls ? 465 : 587) : Number(port),
    isTls,
    isLoopback: isLoopbackUrl(`http://${hostname}/`),
    ...(user !== '' && { login: { user, password: pass } }),
  }
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * The key of a Standard Webhooks secret: base64 with or without `whsec_` (24 to 64 bytes by the section
 * "Signature scheme"; 16 to 128 are accepted).
 */
export const parseSigningKey = (text: string): Buffer | undefined => {
  const encoded = text.trim().replace(/^whsec_/, '')
  // Buffer.from ignores invalid characters silently.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= 16 && key.length <= 128 ? key : undefined
}

/** A valid header value (RFC 9110 section 5.5), trimmed. */
export const parseHeaderValue = (text: string): string | undefined =>
  /^[\t\x20-\x7e]*$/.test(text.trim()) ? text.trim() : undefined
