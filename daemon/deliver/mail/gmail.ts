import { DeliveryFailed, TokenRefused } from '../delivery-failed.ts'
import { failureOfAnswer } from '../failure-of-answer.ts'
import { type TargetAnswer, requestTarget } from '../request.ts'
import type { Attempt } from '../sender.ts'
import type { Mail } from './mail-message.ts'

const gmail = 'gmail'

export type GmailCall = {
  readonly apiUrl: string
  readonly accessToken: string
  readonly attempt: Attempt
}

/** Sends a mail as the account of the login (developers.google.com/gmail/api, users.messages.send). */
export const sendByGmail = async (mail: Mail, call: GmailCall): Promise<void> => {
  await request(call, '/gmail/v1/users/me/messages/send', {
    raw: mail.bytes.toString('base64url'),
  })
}

/** True when the mail of an earlier try is there. Throws `DeliveryFailed` when that cannot be told. */
export const isInGmail = async (mail: Mail, call: GmailCall): Promise<boolean> => {
  const query = new URLSearchParams({
    q: `rfc822msgid:${mail.messageId.slice(1, -1)}`,
    includeSpamTrash: 'true',
  })
  const { json } = await request(call, `/gmail/v1/users/me/messages?${query.toString()}`)
  const { messages, resultSizeEstimate } = json
  if (Array.isArray(messages)) return messages.length > 0
  if (resultSizeEstimate === 0) return false
  // Cut off, or of something else: it may be there, unseen.
  throw new DeliveryFailed('later', 'gmail gave no list of mails')
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
  const failure = failureOf(answer)
  if (failure) throw failure
  return answer
}

const limits = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

const failureOf = (answer: TargetAnswer): Error | undefined => {
  if (answer.status === 401) return new TokenRefused()
  const reasons = reasonsOf(answer)
  if (reasons.includes('dailyLimitExceeded'))
    return new DeliveryFailed('refused', `gmail takes no more today (${answer.status})`, {
      hint: 'the limit of a day is reached: deliver it again tomorrow',
    })
  const failure = failureOfAnswer(gmail, answer, { hint: hints[answer.status] })
  if (answer.status === 403 && reasons.some((reason) => limits.has(reason)))
    return new DeliveryFailed('later', 'gmail takes no more for now (403)')
  return failure
}

const hints: Readonly<Record<number, string>> = {
  400: 'Gmail cannot use this mail: check the address',
  403: 'the login lacks the scope gmail.modify or gmail.send, or the project has no Gmail API: doorward oauth login google',
}

/** `{error: {errors: [{reason}]}}`. */
const reasonsOf = ({ json }: TargetAnswer): string[] => {
  const { error } = json as { readonly error?: { readonly errors?: unknown } }
  const errors = Array.isArray(error?.errors) ? (error.errors as readonly unknown[]) : []
  return errors.flatMap((entry) => {
    const reason = (entry as { readonly reason?: unknown } | null)?.reason
    return typeof reason === 'string' ? [reason] : []
  })
}
