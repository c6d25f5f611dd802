import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { SmtpServer } from '../targets/secrets.ts'
import { openTunnel, startTls, trustOptions } from './outgoing.ts'

/** Options of nodemailer, for deliveries and for the check of a mail server. */
export const smtpOptions = (
  { host, port, isTls, isLoopback }: SmtpServer,
  { connectMs, silentMs }: { readonly connectMs: number; readonly silentMs: number },
) => ({
  host,
  port,
  secure: isTls,
  requireTLS: !isTls && !isLoopback,
  // A server on this machine has a self-signed certificate, and no network is involved.
  tls: isLoopback ? { rejectUnauthorized: false } : trustOptions(),
  // Otherwise the server would get this machine's name.
  name: 'localhost',
  connectionTimeout: connectMs,
  greetingTimeout: connectMs,
  dnsTimeout: connectMs,
  socketTimeout: silentMs,
  logger: false,
})

/**
 * More options of nodemailer where a proxy leads to the mail server: the connection, with TLS if it begins
 * so. Nodemailer's own proxy does not say what was refused. Throws `ProxyError`, or an error of TLS.
 */
export const connectMail = async (
  { host, port, isTls }: SmtpServer,
  limitMs: number,
  signal?: AbortSignal,
): Promise<{ readonly connection?: Socket; readonly secured?: boolean }> => {
  const url = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`)
  const connection = await openTunnel(url, limitMs, signal)
  if (!connection) return {}
  if (!isTls) return { connection }
  const secure = startTls(url, connection)
  const late = setTimeout(() => secure.destroy(new Error('timeout')), limitMs)
  try {
    await once(secure, 'secureConnect', signal && { signal })
    return { connection: secure, secured: true }
  } catch (error) {
    secure.destroy()
    throw error
  } finally {
    clearTimeout(late)
  }
}
