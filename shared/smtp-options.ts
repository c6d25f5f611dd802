import type { SmtpServer } from './target-secrets.ts'

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
