import type { TargetSettings } from '../../../shared/config/schema.ts'
import { parseSmtpServer } from '../../../shared/targets/secrets.ts'
import { DeliveryError, asReadOnly, TokenRefused } from '../delivery-error.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../request.ts'
import type { Asking, Attempt, Sender } from '../sender.ts'
import { needsOf, readVariable, type TokenSource, withToken } from '../token.ts'
import { composeMail, type Mail, sendBySmtp, toWords } from './smtp.ts'

/**
 * Mail through the owner's server, or through Gmail with the google login. All attempts have the same
 * Message-ID, by which Gmail finds an earlier one; few mail servers recognise a repeat by it.
 */
export const createEmail = (
  {
    smtp_url_env: smtpUrlEnv,
    from,
    api_url: apiUrl = 'https://gmail.googleapis.com',
  }: TargetSettings['email'],
  env: NodeJS.ProcessEnv,
  token: TokenSource,
): Sender => ({
  isIdempotent: smtpUrlEnv === undefined,
  preview: (message) => {
    const { subject, text } = toWords(message)
    return `To: ${message.address}\nSubject: ${subject}\n\n${text}`
  },
  send: async (message, attempt) => {
    const mail = await composeMail(message, from)
    if (smtpUrlEnv === undefined) return sendMailByGmail(mail, attempt, apiUrl, token)
    await sendBySmtp(mail, readVariable(smtpUrlEnv, env, smtpForm, parseSmtpServer), attempt)
    return undefined
  },
  needs: smtpUrlEnv === undefined ? needsOf(token, sendScopes) : undefined,
  check: async (_, asking) => {
    if (smtpUrlEnv === undefined)
      return withToken(token, async (accessToken) =>
        // developers.google.com/workspace/gmail/api/reference/rest/v1/users/getProfile
        request({ apiUrl, accessToken, attempt: asking }, '/gmail/v1/users/me/profile'),
      )
    const server = readVariable(smtpUrlEnv, env, smtpForm, parseSmtpServer)
    await sendBySmtp(undefined, server, { ...asking, mailTimeoutMs: 0 })
    return undefined
  },
})

const smtpForm = 'smtps://user:password@host:465'

/** developers.google.com/gmail/api/reference/rest/v1/users.messages/send */
const sendScopes = [
  'https://mail.google.com/',
  ...['modify', 'compose', 'send'].map((name) => `https://www.googleapis.com/auth/gmail.${name}`),
]

const sendMailByGmail = async (
  mail: Mail,
  attempt: Attempt,
  apiUrl: string,
  token: TokenSource,
): Promise<string | undefined> =>
  withToken(token, async (accessToken) => {
    const call = { apiUrl, accessToken, attempt }
    if (attempt.mayHaveArrived && (await asReadOnly(isInGmail(mail, call))))
      return 'an earlier attempt had arrived'
    // developers.google.com/gmail/api, users.messages.send.
    await request(call, '/gmail/v1/users/me/messages/send', {
      raw: mail.bytes.toString('base64url'),
    })
    return undefined
  })

const gmail = 'gmail'

type GmailCall = {
  readonly apiUrl: string
  readonly accessToken: string
  readonly attempt: Asking
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
  json?: object,
): Promise<TargetResponse> => {
  const response = await requestTarget(new URL(`${apiUrl}${path}`), {
    target: gmail,
    token: accessToken,
    json,
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
