import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { parseJson } from '../../util/payload-path.ts'

/*
 * The files in which agent programs keep their logins. A program renews its access token by the refresh token,
 * and the server may give a new refresh token each time: the old one is then worthless.
 *
 * Claude Code: { claudeAiOauth: { accessToken, refreshToken, expiresAt, … }, mcpOAuth, … }
 * Codex: { tokens: { id_token, access_token (a JWT), refresh_token, account_id }, last_refresh, OPENAI_API_KEY }
 * OpenCode, by provider: { openai: { type: 'oauth', access, refresh, expires, accountId }, … }
 *
 * Gemini CLI is not among them: Google gives no new refresh tokens, so its copy needs no renewal here.
 */

export type LoginKind = 'claude' | 'codex' | 'opencode'

export type LoginFile = Readonly<Record<string, unknown>>

/** One login of a file that its program can renew. */
export type Login = {
  readonly key: string
  readonly refreshToken: string
  /** When its access token ends, in milliseconds. */
  readonly endsAt: number
}

type Members = { readonly access: string; readonly refresh: string; readonly ends?: string }

const members: Readonly<Record<LoginKind, Members>> = {
  claude: { access: 'accessToken', refresh: 'refreshToken', ends: 'expiresAt' },
  codex: { access: 'access_token', refresh: 'refresh_token' },
  opencode: { access: 'access', refresh: 'refresh', ends: 'expires' },
}

/** Claude Code also keeps logins of MCP servers and secrets of plugins there: these stay with the owner. */
const claudeKeys: readonly string[] = ['claudeAiOauth', 'organizationUuid']

/** A JWT that ended in 1970. */
const endedToken = 'eyJhbGciOiJub25lIn0.eyJleHAiOjF9.x'
const longAgo = 1

const maxFileBytes = 1024 * 1024

/** Undefined where there is no such file, or none that can be a login. Follows no link where `isCopy`. */
export const readLoginFile = async (
  path: string,
  isCopy = false,
): Promise<LoginFile | undefined> => {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants
  const file = await open(path, O_RDONLY | O_NONBLOCK | (isCopy ? O_NOFOLLOW : 0)).catch(
    () => undefined,
  )
  if (!file) return undefined
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > maxFileBytes) return undefined
    const value = parseJson(await file.readFile('utf8'))
    return isObject(value) ? value : undefined
  } finally {
    await file.close()
  }
}

/** The logins with a refresh token and a known end. */
export const listLogins = (kind: LoginKind, file: LoginFile): Login[] =>
  Object.keys(file).flatMap((key) => readLogin(kind, file, key) ?? [])

const readLogin = (kind: LoginKind, file: LoginFile, key: string): Login | undefined => {
  const { access, refresh, ends } = members[kind]
  const value = file[key]
  if (!isObject(value)) return undefined
  const [accessToken, refreshToken] = [value[access], value[refresh]]
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string') return undefined
  const endsAt = ends === undefined ? readEnd(accessToken) : value[ends]
  if (refreshToken === '' || typeof endsAt !== 'number' || endsAt <= 0) return undefined
  return { key, refreshToken, endsAt }
}

/** By the claim `exp` of a JWT. */
const readEnd = (token: string): number | undefined => {
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return isObject(claims) && typeof claims['exp'] === 'number' ? claims['exp'] * 1000 : undefined
}

/** The file without refresh tokens: nothing in it is worth more than the time that its tokens have left. */
export const withoutRefreshTokens = (kind: LoginKind, file: LoginFile): LoginFile =>
  asEnded(kind, file, [])

/** The file with the refresh tokens of these logins alone, as if their access tokens had ended. */
export const asEnded = (kind: LoginKind, file: LoginFile, due: readonly Login[]): LoginFile => {
  const { access, refresh, ends } = members[kind]
  const ended = ends === undefined ? { [access]: endedToken } : { [ends]: longAgo }
  const change = ([key, value]: [string, unknown]): [string, unknown] => {
    if (!isObject(value) || typeof value[refresh] !== 'string') return [key, value]
    // OpenCode has the token of GitHub Copilot there, which does not end.
    if (kind === 'opencode' && value['expires'] === 0) return [key, value]
    const isDue = due.some((login) => login.key === key)
    return [key, { ...value, ...(isDue ? ended : { [refresh]: '' }) }]
  }
  return Object.fromEntries(
    Object.entries(file)
      .filter(([key]) => kind !== 'claude' || claudeKeys.includes(key))
      .map(change),
  )
}

/** Members that say whose login it is. */
const accountMembers = ['type', 'account_id', 'accountId', 'enterpriseUrl']

/**
 * The owner's file with those logins that were renewed: of the same account, and ending later. A login is left as
 * it is where the owner has another refresh token by now, renewed or logged in elsewhere. Undefined when nothing
 * changes.
 */
export const takeRenewed = (
  kind: LoginKind,
  owner: LoginFile,
  lent: readonly Login[],
  renewed: LoginFile,
): LoginFile | undefined => {
  const changes = lent.flatMap(({ key, refreshToken }) => {
    const [before, after] = [readLogin(kind, owner, key), readLogin(kind, renewed, key)]
    if (before?.refreshToken !== refreshToken || !after || after.endsAt <= before.endsAt) return []
    return isSameAccount(owner[key], renewed[key]) ? [[key, renewed[key]] as const] : []
  })
  if (changes.length === 0) return undefined
  const { last_refresh } = kind === 'codex' ? renewed : owner
  return {
    ...owner,
    ...Object.fromEntries(changes),
    ...(typeof last_refresh === 'string' && { last_refresh }),
  }
}

const isSameAccount = (before: unknown, after: unknown): boolean =>
  isObject(before) &&
  isObject(after) &&
  accountMembers.every((name) => before[name] === undefined || before[name] === after[name])

const isObject = (value: unknown): value is LoginFile =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
