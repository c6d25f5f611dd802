import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TokenSummary } from '../../../shared/api.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'

/** What a token file says of its login, or why it says nothing. Never a token. */
export type TokenFile = {
  readonly provider: string
  readonly is: 'read' | 'damaged' | 'insecure'
  readonly login?: Login
}

/** The part of a login that can be known without the daemon; `account` is left out. */
export type Login = Pick<TokenSummary, 'status' | 'expiresAt' | 'refreshable' | 'scopes'> & {
  /** What was asked for and not granted by name. */
  readonly missingScopes: readonly string[]
  readonly loginExpiresAt?: string
  /** Why it is over, where the provider said so. */
  readonly ended?: string
}

/** Reads the token files as the daemon would, and moves none of them. */
export const lookAtTokenFiles = async (home: Home, now: number): Promise<TokenFile[]> => {
  const names = await readdir(home.tokens).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'EACCES') return []
    throw error
  })
  const providers = names.flatMap(
    (name) => /^([\w-]+)\.json(\.damaged-\w+)?$/.exec(name)?.[1] ?? [],
  )
  return Promise.all(
    [...new Set(providers)].sort().map(async (provider) => readOne(home, provider, now)),
  )
}

const readOne = async (home: Home, provider: string, now: number): Promise<TokenFile> => {
  try {
    const text = await readSecretFile(join(home.tokens, `${provider}.json`))
    const login = text === undefined ? undefined : loginIn(text, now)
    return login ? { provider, is: 'read', login } : { provider, is: 'damaged' }
  } catch (error) {
    if (error instanceof DoorwardError) return { provider, is: 'insecure' }
    throw error
  }
}

const loginIn = (text: string, now: number): Login | undefined => {
  try {
    const record = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    if (record?.['version'] !== 1 || typeof record['accessToken'] !== 'string') return undefined
    const { expiresAt, ended, refreshExpiresAt } = record
    if (expiresAt !== null && typeof expiresAt !== 'string') return undefined
    const scopes = textsIn(record['scopes'])
    const isRenewable = typeof record['refreshToken'] === 'string'
    const isOver = typeof ended === 'object' && ended !== null
    const isFresh = expiresAt === null || Date.parse(expiresAt) > now
    const cause = isOver && 'cause' in ended ? ended.cause : undefined
    return {
      status: isOver ? 'needs-login' : isFresh ? 'ok' : isRenewable ? 'expired' : 'needs-login',
      expiresAt,
      refreshable: isRenewable && !isOver,
      scopes,
      missingScopes: textsIn(record['requestedScopes']).filter((scope) => !scopes.includes(scope)),
      ...(typeof refreshExpiresAt === 'string' && { loginExpiresAt: refreshExpiresAt }),
      ...(typeof cause === 'string' && { ended: cause }),
    }
  } catch {
    return undefined
  }
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
