import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import MailComposer from 'nodemailer/lib/mail-composer'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { smtpOptions, type SmtpServer } from '../../../shared/config/target-secrets.ts'
import { isCertificateError, isNotTls } from '../../../shared/net.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { DeliveryError } from '../delivery-error.ts'
import type { Attempt, Message } from '../sender.ts'

const connectMs = 15_000

const email = 'email'

/**
 * Hands a mail to a server (RFC 5321). TLS always, but on loopback, where it is used if the server has it.
 * Throws `DeliveryFailed`: `later` for 4xx and before the text was sent, `unknown` when no answer came
 * after it. Servers may take their time with that one: they look for viruses, or ask the next server.
 */
export const sendBySmtp = async (
  mail: Mail,
  server: SmtpServer,
  { signal, timeoutMs, takeMailMs }: Attempt,
): Promise<void> => {
  const { login } = server
  const connection = new SMTPConnection({
    ...smtpOptions(server, { connectMs, silentMs: timeoutMs }),
    socketCloseTimeout: 1000,
  })
  const stop = () => connection.close()
  // A server that says a word now and then is never silent.
  let timer = setTimeout(stop, timeoutMs * 4)
  let isSending = false
  const textGoes = () => {
    isSending = true
    clearTimeout(timer)
    timer = setTimeout(stop, takeMailMs)
    mayBeSilent(connection, takeMailMs)
  }
  try {
    await new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      signal.addEventListener('abort', stop, { once: true })
      // One that goes before its time says so here, whatever it was asked.
      connection.on('error', reject)
      connection.once('end', () => reject(new Error('the connection ended')))
      const send = () =>
        connection.send(
          { from: mail.envelope.from, to: [...mail.envelope.to] },
          toContent(mail, textGoes),
          (error) => (error ? reject(error) : resolve()),
        )
      connection.connect((error) => {
        if (error) return reject(error)
        if (!login || !connection.allowsAuth) return login ? reject(noLogin()) : send()
        const credentials = { user: login.user, pass: login.password }
        connection.login({ credentials }, (refused) => (refused ? reject(refused) : send()))
        return undefined
      })
    })
    mayBeSilent(connection, timeoutMs)
    connection.quit()
  } catch (error) {
    connection.close()
    throw toFailure(error, isSending, signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

const mayBeSilent = ({ _socket: socket }: SMTPConnection, ms: number): void => {
  if (socket) socket.setTimeout(ms)
}

/** The text of the mail; it is read once the server has said that it takes it. */
const toContent = ({ bytes }: Mail, textGoes: () => void): Readable =>
  new Readable({
    read() {
      textGoes()
      this.push(bytes)
      this.push(null)
    },
  })

const noLogin = () =>
  new DeliveryError('refused', 'the mail server takes no login', {
    hint: 'leave user and password out of the URL, or name another port',
  })

type SmtpError = {
  readonly code: string
  /** What the system said, where nodemailer has a word of its own for all of that. */
  readonly systemCode: string
  readonly responseCode: number | undefined
}

/** The server's own words are not shown: they can hold the address. */
const readError = (error: unknown): SmtpError => {
  const { code, originalCode, responseCode } = (
    typeof error === 'object' && error !== null ? error : {}
  ) as Readonly<Record<string, unknown>>
  return {
    code: getCode(code),
    systemCode: getCode(originalCode),
    responseCode: typeof responseCode === 'number' ? responseCode : undefined,
  }
}

const getCode = (code: unknown): string =>
  typeof code === 'string' && /^[A-Z0-9_]{1,50}$/.test(code) ? code : ''

const toFailure = (error: unknown, isSending: boolean, signal: AbortSignal) => {
  if (error instanceof DeliveryError) return error
  const { code, systemCode, responseCode } = readError(error)
  if (responseCode !== undefined && responseCode >= 400 && responseCode < 500)
    return new DeliveryError('later', `the mail server asks to try later (${responseCode})`)
  // Before its answer: who has no STARTTLS says that with a 5xx.
  if (isCertificateError(systemCode)) return untrusted(systemCode)
  if (code === 'ETLS' || isNotTls(systemCode)) return noTls()
  if (responseCode !== undefined && responseCode >= 500) {
    const isLogin = code === 'EAUTH' || [530, 534, 535, 538].includes(responseCode)
    return isLogin
      ? new DeliveryError('refused', `the mail server refused the login (${responseCode})`, {
          hint: 'check user and password in the URL; many servers want an app password',
        })
      : new DeliveryError('refused', `the mail server refused the mail (${responseCode})`, {
          hint: 'check the address, and that the server sends mail from targets.email.from',
        })
  }
  if (isSending)
    return new DeliveryError(
      'unknown',
      signal.aborted
        ? `${email} was not waited for, as the daemon stops`
        : 'the mail server did not say whether it took the mail',
    )
  if (code === 'EAUTH' || code === 'EENVELOPE' || code === 'EMESSAGE')
    return new DeliveryError('refused', `the mail server and doorward do not agree (${code})`, {
      hint: 'check the URL of the mail server',
    })
  const shown = systemCode || code
  return new DeliveryError('later', `the mail server cannot be reached${shown && ` (${shown})`}`, {
    hint: 'check the URL of the mail server and the network',
  })
}

const noTls = () =>
  new DeliveryError('refused', 'no TLS can be had with the mail server', {
    hint: 'smtps:// is port 465, smtp:// is port 587 with STARTTLS: check which one it has',
  })

const untrusted = (code: string) =>
  new DeliveryError('refused', `the certificate of the mail server cannot be trusted (${code})`, {
    hint: 'check the name of the server in the URL: the certificate must be for it, and in date',
  })

export type Mail = {
  /** Bare addresses, host names as the mail system writes them (RFC 5891). */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  /** Stays the same over all tries, so that a repeat is known: with its angle brackets. */
  readonly messageId: string
  /** The whole message, with CRLF at the end of its lines (RFC 5322). */
  readonly bytes: Buffer
}

const subjectCharacters = 120

/**
 * An answer as a mail: plain text alone, so that nothing in it is loaded, run or looks like what it is
 * not. Marked as written by a program (RFC 3834), which keeps other programs from answering it.
 */
export const composeMail = async (message: Message, from: string | undefined): Promise<Mail> => {
  const { address: to, text, answered } = message
  const messageId = toMessageId(message, from)
  const footer = `${answered.webhook} · ${answered.receivedAt.toISOString()} · ${answered.eventId}`
  const composed = new MailComposer({
    ...(from === undefined ? {} : { from }),
    to,
    subject: toSubject(answered.webhook, text),
    messageId,
    date: answered.receivedAt,
    text: `${text}\n\n-- \n${footer}\n`,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: 'windows',
  }).compile()
  const envelope = composed.getEnvelope()
  return {
    envelope: { from: envelope.from || '', to: envelope.to },
    messageId,
    bytes: await composed.build(),
  }
}

const toMessageId = ({ address, answered }: Message, from: string | undefined): string => {
  const digest = createHash('sha256').update(`${address}\n${answered.text}`).digest('hex')
  const domain = /@([A-Za-z0-9.-]+)>?$/.exec(from ?? '')?.[1] ?? 'doorward.invalid'
  return `<${answered.eventId}.${digest.slice(0, 16)}@${domain}>`
}

/** The first line that says something, after the webhook that it answers. */
const toSubject = (webhook: string, text: string): string => {
  const line = text
    .split('\n', 20)
    .map(withoutMarks)
    .find((candidate) => candidate !== '')
  const subject = `${webhook}: ${line ?? 'an answer'}`
  if (subject.length <= subjectCharacters) return subject
  // Not in the middle of a character.
  return `${subject.slice(0, subjectCharacters - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

const withoutMarks = (line: string): string =>
  toPlainLine(line.slice(0, 1000))
    .replace(/^[#>*`~\s-]+/, '')
    .replaceAll(/\*\*|`/g, '')
