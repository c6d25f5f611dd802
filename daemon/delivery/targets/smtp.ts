import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import type MailComposer from 'nodemailer/lib/mail-composer'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { SmtpServer } from '../../../shared/targets/secrets.ts'
import { isCertificateError, isNotTls } from '../../../shared/net.ts'
import { describeUnreachable, ProxyError } from '../../../shared/network/faults.ts'
import { connectMail, smtpOptions } from '../../../shared/network/mail.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { describeAbort } from '../../util/concurrency.ts'
import { DeliveryError } from '../delivery-error.ts'
import type { Attempt, Message } from '../sender.ts'

const maxConnectMs = 15_000

type Nodemailer = {
  readonly Composer: typeof MailComposer
  readonly Connection: typeof SMTPConnection
}

let nodemailer: Nodemailer | undefined

/** Loads the library for mail, with the first configuration that sends some: it takes 1.6 MB. */
export const loadMail = (): Nodemailer => {
  const load = createRequire(import.meta.url)
  nodemailer ??= {
    Composer: load('nodemailer/lib/mail-composer') as typeof MailComposer,
    Connection: load('nodemailer/lib/smtp-connection') as typeof SMTPConnection,
  }
  return nodemailer
}

/**
 * Sends a mail through a server (RFC 5321); without one, it only connects and logs in. Always with TLS, except on loopback, where TLS is optional.
 * Throws `DeliveryError`: `retryable` for 4xx and before the text is sent, `indeterminate` without a
 * response to the text. That response may take long: servers scan for viruses or ask the next server.
 */
export const sendBySmtp = async (
  mail: Mail | undefined,
  server: SmtpServer,
  { signal, timeoutMs, mailTimeoutMs }: Pick<Attempt, 'signal' | 'timeoutMs' | 'mailTimeoutMs'>,
): Promise<void> => {
  const { login } = server
  const connectMs = Math.min(timeoutMs, maxConnectMs)
  const connection = new (loadMail().Connection)({
    ...smtpOptions(server, { connectMs, silentMs: timeoutMs }),
    ...(await connectMail(server, connectMs, signal).catch((error: unknown) => {
      throw toFailure(error, false, signal)
    })),
    socketCloseTimeout: 1000,
  })
  const close = () => connection.close()
  // A server that sends a byte now and then never reaches the timeout for silence.
  let timer = setTimeout(close, timeoutMs * 4)
  let isSending = false
  const onTextRead = () => {
    isSending = true
    clearTimeout(timer)
    timer = setTimeout(close, mailTimeoutMs)
    setSilenceTimeout(connection, mailTimeoutMs)
  }
  try {
    await new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      signal.addEventListener('abort', close, { once: true })
      // A server that closes early is reported here, whatever the command.
      connection.on('error', reject)
      connection.once('end', () => reject(new Error('the connection was closed')))
      const send = () => {
        if (!mail) return resolve()
        return connection.send(
          { from: mail.envelope.from, to: [...mail.envelope.to] },
          toContent(mail, onTextRead),
          (error) => (error ? reject(error) : resolve()),
        )
      }
      connection.connect((error) => {
        if (error) return reject(error)
        if (!login || !connection.allowsAuth) return login ? reject(loginUnsupported()) : send()
        const credentials = { user: login.user, pass: login.password }
        connection.login({ credentials }, (refused) => (refused ? reject(refused) : send()))
        return undefined
      })
    })
    setSilenceTimeout(connection, timeoutMs)
    connection.quit()
  } catch (error) {
    connection.close()
    throw toFailure(error, isSending, signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', close)
  }
}

const setSilenceTimeout = ({ _socket: socket }: SMTPConnection, ms: number): void => {
  if (socket) socket.setTimeout(ms)
}

/** The text of the mail; read once the server is ready for it. */
const toContent = ({ bytes }: Mail, onRead: () => void): Readable =>
  new Readable({
    read() {
      onRead()
      this.push(bytes)
      this.push(null)
    },
  })

const loginUnsupported = () =>
  new DeliveryError('permanent', 'the mail server supports no login', {
    hint: 'remove user and password from the URL, or use another port',
  })

type SmtpError = {
  readonly code: string
  /** The system's code, which nodemailer replaces with its own; before nodemailer the same as `code`. */
  readonly systemCode: string
  readonly responseCode: number | undefined
}

/** Without the server's words, which may contain the address. */
const readError = (error: unknown): SmtpError => {
  const { code, originalCode, responseCode } = (
    typeof error === 'object' && error !== null ? error : {}
  ) as Readonly<Record<string, unknown>>
  return {
    code: toCode(code),
    systemCode: toCode(originalCode) || toCode(code),
    responseCode: typeof responseCode === 'number' ? responseCode : undefined,
  }
}

const toCode = (code: unknown): string =>
  typeof code === 'string' && /^[A-Z0-9_]{1,50}$/.test(code) ? code : ''

const toFailure = (error: unknown, isSending: boolean, signal: AbortSignal) => {
  if (error instanceof DeliveryError) return error
  if (error instanceof ProxyError) return unreachable(error)
  const { code, systemCode, responseCode } = readError(error)
  if (responseCode !== undefined && responseCode >= 400 && responseCode < 500)
    return new DeliveryError('retryable', `the mail server asks to try later (${responseCode})`)
  // Before the status: a server without STARTTLS answers 5xx.
  if (isCertificateError(systemCode))
    return unreachable(Object.assign(new Error(), { code: systemCode }))
  if (code === 'ETLS' || isNotTls(systemCode)) return tlsUnsupported()
  if (responseCode !== undefined && responseCode >= 500) {
    const isLogin = code === 'EAUTH' || [530, 534, 535, 538].includes(responseCode)
    return isLogin
      ? new DeliveryError('permanent', `the mail server refused the login (${responseCode})`, {
          hint: 'check user and password in the URL; many servers want an app password',
        })
      : new DeliveryError('permanent', `the mail server refused the mail (${responseCode})`, {
          hint: 'check the address, and that the server sends mail from targets.email.from',
        })
  }
  if (isSending)
    return new DeliveryError(
      'indeterminate',
      signal.aborted
        ? `the mail server did not respond before ${describeAbort(signal)}`
        : 'the mail server did not confirm the mail',
    )
  if (code === 'EAUTH' || code === 'EENVELOPE' || code === 'EMESSAGE')
    return new DeliveryError('permanent', `protocol error of the mail server (${code})`, {
      hint: 'check the URL of the mail server',
    })
  return unreachable(Object.assign(new Error(), { code: systemCode || code }))
}

const unreachable = (error: Error) => {
  const { message, hint, isPermanent } = describeUnreachable('the mail server', error)
  return new DeliveryError(isPermanent ? 'permanent' : 'retryable', message, { hint })
}

const tlsUnsupported = () =>
  new DeliveryError('permanent', 'the mail server does not support TLS on this port', {
    hint: 'use smtps:// for port 465, smtp:// for port 587 with STARTTLS',
  })

export type Mail = {
  /** Bare addresses, host names as the mail system writes them (RFC 5891). */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  /** The same for all attempts, so that a repeat is recognised; in angle brackets. */
  readonly messageId: string
  /** The whole message, with CRLF line ends (RFC 5322). */
  readonly bytes: Buffer
}

const maxSubjectLength = 120

/**
 * A reply as a mail: plain text only, so that nothing in it is loaded, run or disguised. Marked as sent by a
 * program (RFC 3834), so that other programs do not answer it.
 */
export const composeMail = async (message: Message, from: string | undefined): Promise<Mail> => {
  const { address: to, reply } = message
  const messageId = toMessageId(message, from)
  const { subject, text } = toWords(message)
  const composed = new (loadMail().Composer)({
    ...(from === undefined ? {} : { from }),
    to,
    subject,
    messageId,
    date: reply.receivedAt,
    text,
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

/** Subject and text of a mail. */
export const toWords = ({ text, reply }: Pick<Message, 'text' | 'reply'>) => {
  const footer = `${reply.webhook} · ${reply.receivedAt.toISOString()} · ${reply.eventId}`
  return {
    subject: toSubject(reply.title ?? reply.webhook, text),
    text: `${text}\n\n-- \n${footer}\n`,
  }
}

const toMessageId = ({ address, reply }: Message, from: string | undefined): string => {
  const digest = createHash('sha256').update(`${address}\n${reply.text}`).digest('hex')
  const domain = /@([A-Za-z0-9.-]+)>?$/.exec(from ?? '')?.[1] ?? 'doorward.invalid'
  return `<${reply.eventId}.${digest.slice(0, 16)}@${domain}>`
}

/** What the event is about, and the first line with text. */
const toSubject = (about: string, text: string): string => {
  const line = text
    .split('\n', 20)
    .map(removeMarkdown)
    .find((candidate) => candidate !== '')
  const subject = `${about}: ${line ?? 'an answer'}`
  if (subject.length <= maxSubjectLength) return subject
  // Not half a surrogate pair.
  return `${subject.slice(0, maxSubjectLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

const removeMarkdown = (line: string): string =>
  toPlainLine(line.slice(0, 1000))
    .replace(/^[#>*`~\s-]+/, '')
    .replaceAll(/\*\*|`/g, '')
