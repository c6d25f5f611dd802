import type { AccessToken } from '../../../../shared/api.ts'
import type { Client } from '../../../../shared/client/client.ts'
import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { enabledRules } from '../../../../shared/config/webhook.ts'
import {
  parseSecretUrl,
  type SmtpServer,
  parseSmtpServer,
} from '../../../../shared/targets/secrets.ts'
import { githubKinds } from '../../../../shared/targets/targets.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { connectMail, smtpOptions } from '../../../../shared/network/mail.ts'
import { isFixed } from '../../../../shared/templates.ts'
import {
  ask,
  type Answer,
  type Reachable,
  parseJsonAnswer,
  reachServer,
  describeReason,
  describeCode,
} from '../ask.ts'
import { type Check, checksFor } from '../check.ts'
import { findLogin } from './logins.ts'

const { ok, warning, error, skipped } = checksFor('targets')

/*
 * Asks each target whether it accepts our token, by requests that leave nothing behind: no message, no mail,
 * no comment. A kind without such a request is only connected to.
 */

type Parts = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  /** The running daemon, which has the tokens of logins. */
  readonly client: Client | undefined
}

/** Checks each target of an enabled webhook that leaves this machine and has its secret. */
export const reachTargets = async (parts: Parts): Promise<Reachable[]> => {
  const { gateway } = parts.config
  const targets = enabledRules(parts.config).flatMap((rule) => rule.targets)
  const kinds = new Set(
    targets.map(({ kind }) => (githubKinds.some((one) => one === kind) ? 'github' : kind)),
  )
  const named = (kind: 'discord' | 'http'): string[] => {
    const all = Object.keys(gateway.targets[kind])
    const used = targets.flatMap((target) => (target.kind === kind ? [target.address] : []))
    return all.filter((name) =>
      used.some((address) => !isFixed(address) || address.source === name),
    )
  }
  const asked = [
    ...(kinds.has('slack') ? [reachSlack(parts)] : []),
    ...(['github', 'gitlab'] as const)
      .filter((kind) => kinds.has(kind))
      .map(async (kind) => reachUser(kind, parts)),
    ...(kinds.has('telegram') ? [reachTelegram(parts)] : []),
    ...(kinds.has('email') ? [reachEmail(parts)] : []),
    ...named('discord').map(async (name) => reachDiscord(name, parts)),
    ...named('http').map(async (name) => reachHttp(name, parts)),
  ]
  return (await Promise.all(asked)).flat()
}

type Token = { readonly token: string } | { readonly check: Check } | undefined

/** Fetches the token of a target, from its variable or its login. Undefined if the variable is unset. */
const fetchToken = async (
  kind: 'slack' | 'github' | 'gitlab' | 'telegram' | 'email',
  variable: string | undefined,
  { config, env, client }: Parts,
): Promise<Token> => {
  if (variable !== undefined) {
    const token = listSecrets([variable], env)[0]?.trim()
    // Other characters cannot be sent in a header.
    return token !== undefined && /^[\x21-\x7e]+$/.test(token) ? { token } : undefined
  }
  const provider = findLogin(kind, config.gateway.targets)?.provider
  if (provider === undefined) return undefined
  if (!client)
    return {
      check: skipped(kind, 'the token of its login comes from the daemon, which does not run'),
    }
  try {
    const path = `/oauth/tokens/${provider}/access`
    const { accessToken } = await client.get<AccessToken>(path, { timeoutMs: 10_000 })
    return { token: accessToken }
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    return { check: error(kind, thrown.message, thrown.hint) }
  }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Makes the check of an answer to a request with our token. */
const toCheck = (
  kind: string,
  asked: Answer,
  good: boolean,
  refused: boolean,
  fix: string,
): Reachable => {
  if (asked.is === 'failed') return { check: error(kind, asked.why, 'check the network') }
  const skew = asked.skewMs === undefined ? {} : { skewMs: asked.skewMs }
  if (good) return { check: ok(kind, 'it answers and accepts our token'), ...skew }
  if (refused) return { check: error(kind, 'it refuses our token', fix), ...skew }
  return {
    check: warning(
      kind,
      `it answers ${asked.status}, which does not tell whether our token is valid`,
    ),
    ...skew,
  }
}

const getFix = (variable: string | undefined, provider: string): string =>
  variable === undefined
    ? `doorward oauth login ${provider}`
    : `put a valid token into ${variable} in .env: doorward config edit env`

/** https://docs.slack.dev/reference/methods/auth.test */
const reachSlack = async (parts: Parts): Promise<Reachable[]> => {
  const { token_env: variable, login, api_url: base } = parts.config.gateway.targets.slack
  const found = await fetchToken('slack', variable, parts)
  if (!found) return []
  if ('check' in found) return [found]
  const asked = await ask(new URL(`${base ?? 'https://slack.com/api'}/auth.test`), {
    method: 'POST',
    headers: bearer(found.token),
  })
  const { ok: isOk, error: refusal } = parseJsonAnswer(asked)
  const fix = getFix(variable, login ?? 'slack')
  const scopes = asked.is === 'answered' ? asked.headers['x-oauth-scopes'] : undefined
  if (isOk === true && typeof scopes === 'string' && !/\bchat:write\b/.test(scopes))
    return [{ check: error('slack', 'its token lacks the scope chat:write', fix) }]
  return [toCheck('slack', asked, isOk === true, typeof refusal === 'string', fix)]
}

const apis = { github: 'https://api.github.com', gitlab: 'https://gitlab.com/api/v4' } as const

/**
 * https://docs.github.com/en/rest/users/users#get-the-authenticated-user
 * https://docs.gitlab.com/api/users/#get-the-current-user
 */
const reachUser = async (kind: keyof typeof apis, parts: Parts): Promise<Reachable[]> => {
  const { token_env: variable, login, api_url: base } = parts.config.gateway.targets[kind]
  const found = await fetchToken(kind, variable, parts)
  if (!found) return []
  if ('check' in found) return [found]
  const asked = await ask(new URL(`${base ?? apis[kind]}/user`), {
    headers: bearer(found.token),
  })
  const status = asked.is === 'answered' ? asked.status : 0
  return [toCheck(kind, asked, status === 200, status === 401, getFix(variable, login ?? kind))]
}

/** https://core.telegram.org/bots/api#getme */
const reachTelegram = async (parts: Parts): Promise<Reachable[]> => {
  const { token_env: variable, api_url: base } = parts.config.gateway.targets.telegram
  const found = await fetchToken('telegram', variable, parts)
  if (!found) return []
  if ('check' in found) return [found]
  const address = `${base ?? 'https://api.telegram.org'}/bot${found.token}/getMe`
  if (!URL.canParse(address)) return []
  const asked = await ask(new URL(address))
  const status = asked.is === 'answered' ? asked.status : 0
  const refused = status === 401 || status === 404
  return [
    toCheck(
      'telegram',
      asked,
      parseJsonAnswer(asked)['ok'] === true,
      refused,
      getFix(variable, 'telegram'),
    ),
  ]
}

/** https://discord.com/developers/docs/resources/webhook#get-webhook-with-token */
const reachDiscord = async (name: string, { config, env }: Parts): Promise<Reachable[]> => {
  const variable = config.gateway.targets.discord[name]?.url_env ?? ''
  const url = parseSecretUrl(listSecrets([variable], env)[0] ?? '')
  if (!url) return []
  const asked = await ask(url)
  const status = asked.is === 'answered' ? asked.status : 0
  const fix = `copy the URL of the webhook again into ${variable} in .env`
  const refused = status === 401 || status === 404
  return [toCheck(`discord:${name}`, asked, status === 200, refused, fix)]
}

const reachEmail = async (parts: Parts): Promise<Reachable[]> => {
  const { smtp_url_env: variable, login, api_url: base } = parts.config.gateway.targets.email
  if (variable !== undefined) {
    const server = parseSmtpServer(listSecrets([variable], parts.env)[0] ?? '')
    if (!server) return []
    const why = await askSmtp(server)
    return [
      {
        check:
          why === undefined
            ? ok('email', `the mail server answers${server.login ? ' and takes the login' : ''}`)
            : error('email', `the mail server: ${why}`, `check the URL in ${variable}`),
      },
    ]
  }
  const found = await fetchToken('email', undefined, parts)
  if (!found) return []
  if ('check' in found) return [found]
  // https://developers.google.com/workspace/gmail/api/reference/rest/v1/users/getProfile
  const url = new URL(`${base ?? 'https://gmail.googleapis.com'}/gmail/v1/users/me/profile`)
  const asked = await ask(url, { headers: bearer(found.token) })
  const status = asked.is === 'answered' ? asked.status : 0
  return [
    toCheck('email', asked, status === 200, status === 401, getFix(undefined, login ?? 'google')),
  ]
}

/** Only connects: any request would be a message. */
const reachHttp = async (name: string, { config, env }: Parts): Promise<Reachable[]> => {
  const { url: address, url_env: variable = '' } = config.gateway.targets.http[name] ?? {}
  const url = address === undefined ? parseSecretUrl(env[variable] ?? '') : new URL(address)
  if (!url) return []
  const why = await reachServer(url)
  return [
    {
      check:
        why === undefined
          ? ok(`http:${name}`, 'something listens there; nothing was sent')
          : error(
              `http:${name}`,
              why,
              `check ${address === undefined ? variable : `targets.http.${name}.url`} and the network`,
            ),
    },
  ]
}

const limitMs = 6000

/**
 * Connects to a mail server with the TLS of a delivery, and logs in if the URL has a login; sends no address.
 * Returns why it failed, without the server's words, or undefined.
 */
export const askSmtp = async (server: SmtpServer): Promise<string | undefined> => {
  const { login } = server
  const { createTransport } = await import('nodemailer')
  let transport: { close(): void } | undefined
  try {
    const mail = createTransport({
      ...smtpOptions(server, { connectMs: limitMs, silentMs: limitMs }),
      ...(await connectMail(server, limitMs)),
      ...(login && { auth: { user: login.user, pass: login.password } }),
    })
    transport = mail
    await mail.verify()
    return undefined
  } catch (error) {
    const { code, originalCode, responseCode } = (error ?? {}) as Readonly<Record<string, unknown>>
    if (code === 'EAUTH') return 'it refuses the login'
    if (code === 'ETLS') return 'no TLS with it that can be trusted'
    if (typeof responseCode === 'number') return `it answers ${responseCode}`
    if (code === 'ETIMEDOUT' || code === 'ECONNECTION') return 'it cannot be reached'
    // The error of the system, which nodemailer's own code hides.
    return typeof originalCode === 'string' ? describeCode(originalCode) : describeReason(error)
  } finally {
    transport?.close()
  }
}
