import { listSecrets } from '../../../shared/config/environment.ts'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import { type SmtpServer, parseSmtpServer } from '../../../shared/config/target-secrets.ts'
import { DeliveryError, lookingOnly, TokenRefused } from '../delivery-error.ts'
import { failureOfAnswer, requestTarget, type TargetAnswer } from '../request.ts'
import type { Attempt, Message, Sender } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'
import { composeMail, type Mail, sendBySmtp } from './smtp.ts'

/**
 * Mail, by a server of the owner's or by Gmail with the login of google. Its Message-ID stays the same over
 * all tries, by which it is found at Gmail; a server cannot be asked, and few know a repeat by it.
 */
export const createEmail = (
  { smtp_url_env: smtpUrlEnv, from, api_url: apiUrl }: TargetSettings['email'],
  env: NodeJS.ProcessEnv,
  token: TokenSource,
): Sender => ({
  knowsRepeats: smtpUrlEnv === undefined,
  send: (message, attempt) =>
    smtpUrlEnv === undefined
      ? byGmail(message, attempt, from, apiUrl ?? 'https://gmail.googleapis.com', token)
      : bySmtp(message, attempt, from ?? '', getServer(smtpUrlEnv, env)),
})

const bySmtp = async (
  message: Message,
  attempt: Attempt,
  from: string,
  server: SmtpServer,
): Promise<undefined> => {
  const mail = await composeMail(message, from)
  await sendBySmtp(mail, server, attempt)
}

const byGmail = async (
  message: Message,
  attempt: Attempt,
  from: string | undefined,
  apiUrl: string,
  token: TokenSource,
): Promise<string | undefined> => {
  const mail = await composeMail(message, from)
  return withToken(token, async (accessToken) => {
    const call = { apiUrl, accessToken, attempt }
    if (attempt.mayHaveArrived && (await lookingOnly(isInGmail(mail, call))))
      return 'an earlier try had arrived'
    await sendByGmail(mail, call)
    return undefined
  })
}

const getServer = (name: string, env: NodeJS.ProcessEnv): SmtpServer => {
  const [text] = listSecrets([name], env)
  const server = text === undefined ? undefined : parseSmtpServer(text)
  if (server) return server
  throw new DeliveryError(
    'refused',
    `${name} ${text === undefined ? 'is unset' : 'does not hold the URL of a mail server'}`,
    { hint: `set ${name} in .env of the home folder to smtps://user:password@host:465` },
  )
}

const gmail = 'gmail'

type GmailCall = {
  readonly apiUrl: string
  readonly accessToken: string
  readonly attempt: Attempt
}

/** Sends a mail as the account of the login (developers.google.com/gmail/api, users.messages.send). */
const sendByGmail = async (mail: Mail, call: GmailCall): Promise<void> => {
  await request(call, '/gmail/v1/users/me/messages/send', {
    raw: mail.bytes.toString('base64url'),
  })
}

/** True when the mail of an earlier try is there. Throws `DeliveryFailed` when that cannot be told. */
const isInGmail = async (mail: Mail, call: GmailCall): Promise<boolean> => {
  const query = new URLSearchParams({
    q: `rfc822msgid:${mail.messageId.slice(1, -1)}`,
    includeSpamTrash: 'true',
  })
  const { json } = await request(call, `/gmail/v1/users/me/messages?${query.toString()}`)
  const { messages, resultSizeEstimate } = json
  if (Array.isArray(messages)) return messages.length > 0
  if (resultSizeEstimate === 0) return false
  // Cut off, or of something else: it may be there, unseen.
  throw new DeliveryError('later', 'gmail gave no list of mails')
}

const request = async (
  { apiUrl, accessToken, attempt }: GmailCall,
  path: string,
  body?: object,
): Promise<TargetAnswer> => {
  const answer = await requestTarget(new URL(`${apiUrl}${path}`), {
    target: gmail,
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${accessToken}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
    attempt,
  })
  const failure = toFailure(answer)
  if (failure) throw failure
  return answer
}

const limits = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

const toFailure = (answer: TargetAnswer): Error | undefined => {
  if (answer.status === 401) return new TokenRefused()
  const reasons = listReasons(answer)
  if (reasons.includes('dailyLimitExceeded'))
    return new DeliveryError('refused', `gmail takes no more today (${answer.status})`, {
      hint: 'the limit of a day is reached: deliver it again tomorrow',
    })
  const failure = failureOfAnswer(gmail, answer, { hint: hints[answer.status] })
  if (answer.status === 403 && reasons.some((reason) => limits.has(reason)))
    return new DeliveryError('later', 'gmail takes no more for now (403)')
  return failure
}

const hints: Readonly<Record<number, string>> = {
  400: 'Gmail cannot use this mail: check the address',
  403: 'the login lacks the scope gmail.modify or gmail.send, or the project has no Gmail API: doorward oauth login google',
}

/** `{error: {errors: [{reason}]}}`. */
const listReasons = ({ json }: TargetAnswer): string[] => {
  const { error } = json as { readonly error?: { readonly errors?: unknown } }
  const errors = Array.isArray(error?.errors) ? (error.errors as readonly unknown[]) : []
  return errors.flatMap((entry) => {
    const reason = (entry as { readonly reason?: unknown } | null)?.reason
    return typeof reason === 'string' ? [reason] : []
  })
}
