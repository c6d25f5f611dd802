import { createPrivateKey, type KeyObject } from 'node:crypto'
import { SignJWT } from 'jose'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { DeliveryError } from '../delivery/delivery-error.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../delivery/request.ts'
import { githubHeaders } from '../delivery/targets/github/github-api.ts'
import { githubPauseMs } from '../util/http-retry-after.ts'
import { textAt } from '../util/payload-path.ts'
import { type BotRecord, toBotLogin } from './bot-record.ts'

/*
 * Requests to GitHub as an App: docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app.
 */

const title = 'github'
const timeoutMs = 15_000
/** A delivery has 25 MB at most. */
const maxResponseBytes = 40 * 1024 * 1024
/** A proof begins a minute ago, for a clock that is ahead, and may last ten minutes. */
const proofAgeS = 60
const proofLifeS = 8 * 60
/** A clock that is off by more is the reason why GitHub refuses a proof. */
const maxSkewMs = 45_000

export type ApiRequest = {
  readonly signal: AbortSignal
  readonly method?: 'POST' | 'PATCH' | 'DELETE'
  readonly body?: object
  readonly etag?: string | undefined
  /** Statuses that the caller handles: they do not throw. */
  readonly handles?: readonly number[]
}

/** The key of an App in any form that GitHub or a person writes. Throws `bot-refused`, without the text. */
export const parsePrivateKey = (pem: string): KeyObject => {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType === 'rsa') return key
  } catch {
    // The library's own message can quote the key.
  }
  throw new DoorwardError('bot-refused', 'this is not the private key of a GitHub App', {
    hint: 'give the whole .pem file that GitHub downloads: it begins with -----BEGIN RSA PRIVATE KEY-----',
  })
}

/** A JWT that proves to be the App, for some minutes (RFC 7519). */
const signProof = async ({ clientId, privateKey }: BotRecord): Promise<string> => {
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(clientId)
    .setIssuedAt(now - proofAgeS)
    .setExpirationTime(now + proofLifeS)
    .sign(parsePrivateKey(privateKey))
}

/** One request as the App. Throws `bot-refused` where GitHub does not know it or its key. */
export const requestAsApp = async (
  bot: BotRecord,
  path: string,
  request: ApiRequest,
): Promise<TargetResponse> => {
  const response = await send(bot.apiUrl, path, await signProof(bot), request)
  const isUnknownApp = response.status === 404 && path === '/app'
  if (response.status === 401 || isUnknownApp) throw refusedProof(bot, response)
  return checkStatus(response, request, bot)
}

/** One request with the token of an installation, or with none. */
export const requestWithToken = async (
  apiUrl: string,
  path: string,
  token: string | undefined,
  request: ApiRequest,
): Promise<TargetResponse> => checkStatus(await send(apiUrl, path, token, request), request)

const send = async (
  apiUrl: string,
  path: string,
  token: string | undefined,
  { signal, method, body, etag }: ApiRequest,
): Promise<TargetResponse> => {
  try {
    return await requestTarget(new URL(`${apiUrl}${path}`), {
      target: title,
      ...(method && { method }),
      ...(token !== undefined && { token }),
      headers: { ...githubHeaders, ...(etag !== undefined && { 'if-none-match': etag }) },
      json: body,
      maxResponseBytes,
      attempt: { signal, timeoutMs },
    })
  } catch (error) {
    throw toUnavailable(error)
  }
}

const toUnavailable = (error: unknown): unknown =>
  error instanceof DeliveryError && error.code === 'delivery-failed'
    ? new DoorwardError('provider-unavailable', error.message, {
        cause: error,
        hint: error.hint ?? 'try again',
        retryAfterMs: error.retryAfterMs,
      })
    : error

const checkStatus = (
  response: TargetResponse,
  { handles = [] }: ApiRequest,
  bot?: BotRecord,
): TargetResponse => {
  const { status, headers, json } = response
  if (status < 300 || handles.includes(status)) return response
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => headers[name]?.toString(),
    message: json['message'],
  })
  if (retryAfterMs !== undefined || status === 429 || status >= 500)
    throw new DoorwardError(
      'provider-unavailable',
      retryAfterMs === undefined
        ? `github answered ${status}`
        : `github rate limit reached (${status})`,
      { hint: 'try again later', retryAfterMs },
    )
  const { message } = toStatusError(title, response, { reason: reasonOf(response) }) ?? {}
  throw new DoorwardError('bot-refused', message ?? `github answered ${status}`, {
    hint: bot ? `see ${bot.settingsUrl}` : undefined,
    ...(bot && { about: { provider: toBotLogin(bot.slug) } }),
  })
}

/** The words of GitHub, in one line; it repeats no token. */
export const reasonOf = ({ json }: Pick<TargetResponse, 'json'>): string | undefined => {
  const said = toPlainLine(textAt(json, 'message') ?? '')
    .replaceAll(/\b(gh[a-z]|github_pat)_[\w.-]+/g, '…')
    .slice(0, 240)
    .replace(/\.$/, '')
  return said === '' ? undefined : said
}

const refusedProof = (bot: BotRecord, response: TargetResponse): DoorwardError => {
  const about = { provider: toBotLogin(bot.slug) }
  const skewMs = Date.now() - Date.parse(response.headers.date ?? '')
  if (Math.abs(skewMs) > maxSkewMs) {
    const minutes = Math.max(1, Math.round(Math.abs(skewMs) / 60_000))
    const way = skewMs > 0 ? 'ahead of' : 'behind'
    return new DoorwardError(
      'bot-refused',
      `github refuses the bot ${bot.slug}: the clock of this machine is ${minutes} min ${way} that of GitHub`,
      { hint: 'set the clock of this machine, for example by timedatectl set-ntp true', about },
    )
  }
  const said = reasonOf(response)
  return new DoorwardError(
    'bot-refused',
    `github does not know the bot ${bot.slug} or its key${said === undefined ? '' : `: ${said}`}`,
    {
      hint: `where the App is still at ${bot.settingsUrl}, make a private key there and: doorward bot rotate ${bot.slug} --key < FILE.pem; else doorward bot remove ${bot.slug}`,
      about,
    },
  )
}
