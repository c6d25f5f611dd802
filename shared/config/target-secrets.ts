import { bareHost } from '../net.ts'
import { isLoopbackUrl } from './schema.ts'

/*
 * What the variables that targets name can hold. Each reader gives undefined for what cannot be used, and
 * nobody shows the text: a part of it is a password or a token.
 */

/** The URL of a webhook of Discord: https, or http on loopback. */
export const parseDiscordUrl = (text: string): URL | undefined => {
  const trimmed = text.trim()
  if (!URL.canParse(trimmed)) return undefined
  const url = new URL(trimmed)
  const isSecure =
    url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackUrl(url.href))
  const isPlain = url.username === '' && url.password === '' && url.hash === ''
  return isSecure && isPlain ? url : undefined
}

/** A mail server, as `smtps://user:password@host:465` or `smtp://…:587` names it. */
export type SmtpServer = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte; else STARTTLS, which only a server on this machine may lack. */
  readonly isTls: boolean
  readonly isLoopback: boolean
  readonly login?: { readonly user: string; readonly password: string }
}

/** Reads the URL of a mail server (RFC 8314: port 465 is TLS, 587 STARTTLS). */
export const parseSmtpServer = (text: string): SmtpServer | undefined => {
  const trimmed = text.trim()
  if (!/^smtps?:\/\//i.test(trimmed) || !URL.canParse(trimmed)) return undefined
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(trimmed)
  const isTls = protocol === 'smtps:'
  const [user, pass] = [decoded(username), decoded(password)]
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

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * The key of a secret of Standard Webhooks: base64, after `whsec_` if that stands before it (the
 * specification's "Signature scheme": 24 to 64 bytes; from 16 on it is taken).
 */
export const parseSigningKey = (text: string): Buffer | undefined => {
  const encoded = text.trim().replace(/^whsec_/, '')
  // Buffer.from leaves out what is no base64 without a word.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return undefined
  const key = Buffer.from(encoded, 'base64')
  return key.length >= 16 && key.length <= 128 ? key : undefined
}

/** What a header can hold (RFC 9110 section 5.5), without the spaces around it. */
export const parseHeaderValue = (text: string): string | undefined =>
  /^[\t\x20-\x7e]*$/.test(text.trim()) ? text.trim() : undefined

/** How a mail server is spoken to, with nodemailer's names: by a delivery, and by who only asks whether it could. */
export const smtpOptions = (
  { host, port, isTls, isLoopback }: SmtpServer,
  { connectMs, silentMs }: { readonly connectMs: number; readonly silentMs: number },
) => ({
  host,
  port,
  secure: isTls,
  requireTLS: !isTls && !isLoopback,
  // A server on this machine has a certificate of its own making, and nobody stands between.
  tls: { rejectUnauthorized: !isLoopback },
  // Else the name of this machine would be told.
  name: 'localhost',
  connectionTimeout: connectMs,
  greetingTimeout: connectMs,
  dnsTimeout: connectMs,
  socketTimeout: silentMs,
  logger: false,
})
