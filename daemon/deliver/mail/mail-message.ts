import { createHash } from 'node:crypto'
import MailComposer from 'nodemailer/lib/mail-composer'
import { plainLine } from '../../../shared/text.ts'
import type { Message } from '../sender.ts'

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
  const messageId = messageIdOf(message, from)
  const footer = `${answered.webhook} · ${answered.receivedAt.toISOString()} · ${answered.eventId}`
  const composed = new MailComposer({
    ...(from === undefined ? {} : { from }),
    to,
    subject: subjectOf(answered.webhook, text),
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

const messageIdOf = ({ address, answered }: Message, from: string | undefined): string => {
  const digest = createHash('sha256').update(`${address}\n${answered.text}`).digest('hex')
  const domain = /@([A-Za-z0-9.-]+)>?$/.exec(from ?? '')?.[1] ?? 'doorward.invalid'
  return `<${answered.eventId}.${digest.slice(0, 16)}@${domain}>`
}

/** The first line that says something, after the webhook that it answers. */
const subjectOf = (webhook: string, text: string): string => {
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
  plainLine(line.slice(0, 1000))
    .replace(/^[#>*`~\s-]+/, '')
    .replaceAll(/\*\*|`/g, '')
