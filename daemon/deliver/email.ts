import type { TargetSettings } from '../../shared/config/schema.ts'
import { secretsOf } from '../../shared/config/environment.ts'
import { type SmtpServer, smtpServerOf } from '../../shared/config/target-secrets.ts'
import { DeliveryFailed, lookingOnly } from './delivery-failed.ts'
import { isInGmail, sendByGmail } from './mail/gmail.ts'
import { composeMail } from './mail/mail-message.ts'
import { sendBySmtp } from './mail/smtp.ts'
import type { Attempt, Message, Sender } from './sender.ts'
import { type TokenSource, withToken } from './token.ts'

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
      : bySmtp(message, attempt, from ?? '', serverOf(smtpUrlEnv, env)),
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

const serverOf = (name: string, env: NodeJS.ProcessEnv): SmtpServer => {
  const [text] = secretsOf([name], env)
  const server = text === undefined ? undefined : smtpServerOf(text)
  if (server) return server
  throw new DeliveryFailed(
    'refused',
    `${name} ${text === undefined ? 'is unset' : 'does not hold the URL of a mail server'}`,
    { hint: `set ${name} in .env of the home folder to smtps://user:password@host:465` },
  )
}
