import { listSecrets } from '../../../shared/config/environment.ts'
import type { TargetSettings } from '../../../shared/config/schema.ts'
import { type SmtpServer, parseSmtpServer } from '../../../shared/targets/secrets.ts'
import { DeliveryError, asReadOnly, TokenRefused } from '../delivery-error.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../request.ts'
import type { Attempt, Message, Sender } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'
import { composeMail, type Mail, sendBySmtp } from './smtp.ts'

/**
 * Mail through the owner's server, or through Gmail with the google login. All attempts have the same
 * Message-ID, by which Gmail finds an earlier one; few mail servers recognise a repeat by it.
 */
export const createEmail = (
  { smtp_url_env: smtpUrlEnv, from, api_url: apiUrl }: TargetSettings['email'],
  env: NodeJS.ProcessEnv,
  token: TokenSource,
): Sender => ({
  isIdempotent: smtpUrlEnv === undefined,
  send: (message, attempt) =>
    smtpUrlEnv === undefined
      ? sendMailByGmail(message, attempt, from, apiUrl ?? 'https://gmail.googleapis.com', token)
      : sendMailBySmtp(message, attempt, from ?? '', getServer(smtpUrlEnv, env)),
})

const sendMailBySmtp = async (
  message: Message,
  attempt: Attempt,
  from: string,
  server: SmtpServer,
): Promise<undefined> => {
  const mail = await composeMail(message, from)
  await sendBySmtp(mail, server, attempt)
}

const sendMailByGmail = async (
  message: Message,
  attempt: Attempt,
  from: string | undefined,
  apiUrl: string,
  token: TokenSource,
): Promise<string | undefined> => {
  const mail = await composeMail(message, from)
  return withToken(token, async (accessToken) => {
    const call = { apiUrl, accessToken, attempt }
    if (attempt.mayHaveArrived && (await asReadOnly(isInGmail(mail, call))))
      return 'an earlier attempt had arrived'
    await sendByGmail(mail, call)
    return undefined
  })
}

const getServer = (name: string, env: NodeJS.ProcessEnv): SmtpServer => {
  const [text] = listSecrets([name], env)
  const server = text === undefined ? undefined : parseSmtpServer(text)
  if (server) return server
  throw new DeliveryError(
    'permanent',
    `${name} ${text === undefined ? 'is unset' : 'is not the URL of a mail server'}`,
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

/** True when the mail of an earlier attempt has arrived. Throws `DeliveryError` when that is unclear. */
const isInGmail = async (mail: Mail, call: GmailCall): Promise<boolean> => {
  const query = new URLSearchParams({
    q: `rfc822msgid:${mail.messageId.slice(1, -1)}`,
    includeSpamTrash: 'true',
  })
  const { json } = await request(call, `/gmail/v1/users/me/messages?${query.toString()}`)
  const { messages, resultSizeEstimate } = json
  if (Array.isArray(messages)) return messages.length > 0
  if (resultSizeEstimate === 0) return false
  // A cut or foreign response does not say that it is missing.
  throw new DeliveryError('retryable', 'gmail returned no list of mails')
}

const request = async (
  { apiUrl, accessToken, attempt }: GmailCall,
  path: string,
  body?: object,
): Promise<TargetResponse> => {
  const response = await requestTarget(new URL(`${apiUrl}${path}`), {
    target: gmail,
    method: body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${accessToken}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
    attempt,
  })
  const failure = toFailure(response)
  if (failure) throw failure
  return response
}

const limits = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

const toFailure = (response: TargetResponse): Error | undefined => {
  if (response.status === 401) return new TokenRefused()
  const reasons = listReasons(response)
  if (reasons.includes('dailyLimitExceeded'))
    return new DeliveryError('permanent', `gmail daily limit reached (${response.status})`, {
      hint: 'deliver it again tomorrow',
    })
  const failure = toStatusError(gmail, response, { hint: hints[response.status] })
  if (response.status === 403 && reasons.some((reason) => limits.has(reason)))
    return new DeliveryError('retryable', 'gmail rate limit reached (403)')
  return failure
}

const hints: Readonly<Record<number, string>> = {
  400: 'Gmail rejects this mail: check the address',
  403: 'the login lacks the scope gmail.modify or gmail.send, or the project has no Gmail API: doorward oauth login google',
}

/** `{error: {errors: [{reason}]}}`. */
const listReasons = ({ json }: TargetResponse): string[] => {
  const { error } = json as { readonly error?: { readonly errors?: unknown } }
  const errors = Array.isArray(error?.errors) ? (error.errors as readonly unknown[]) : []
  return errors.flatMap((entry) => {
    const reason = (entry as { readonly reason?: unknown } | null)?.reason
    return typeof reason === 'string' ? [reason] : []
  })
}
