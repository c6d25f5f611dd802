import { smtpOptions, type SmtpServer } from '../../../shared/config/target-secrets.ts'
import { reasonOf, reasonOfCode } from './ask.ts'

const limitMs = 6000

/**
 * Says hello to a mail server, with TLS as a delivery would have it, and logs in where the URL has a
 * login; names no address. Why it does not work, in words without the server's own, or undefined.
 */
export const askSmtp = async (server: SmtpServer): Promise<string | undefined> => {
  const { login } = server
  const { createTransport } = await import('nodemailer')
  const transport = createTransport({
    ...smtpOptions(server, { connectMs: limitMs, silentMs: limitMs }),
    ...(login && { auth: { user: login.user, pass: login.password } }),
  })
  try {
    await transport.verify()
    return undefined
  } catch (error) {
    const { code, originalCode, responseCode } = (error ?? {}) as Readonly<Record<string, unknown>>
    if (code === 'EAUTH') return 'it refuses the login'
    if (code === 'ETLS') return 'no TLS with it that can be trusted'
    if (typeof responseCode === 'number') return `it answers ${responseCode}`
    if (code === 'ETIMEDOUT' || code === 'ECONNECTION') return 'it cannot be reached'
    // What the system said; nodemailer has a word of its own for all of that.
    return typeof originalCode === 'string' ? reasonOfCode(originalCode) : reasonOf(error)
  } finally {
    transport.close()
  }
}
