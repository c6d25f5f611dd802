import { constants, watch } from 'node:fs'
import { access, mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { agentClis, type CliKind } from '../../../shared/agents/clis.ts'
import { systemCode } from '../../../shared/errors.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import { getUserHome, systemReason } from '../../../shared/home/home.ts'
import { BoundedMap } from '../../util/collections.ts'
import { createKeyedMutex } from '../../util/concurrency.ts'
import { parseJson } from '../../util/payload-path.ts'
import { toAgentError } from '../answer.ts'
import {
  asEnded,
  listLogins,
  type Login,
  type LoginFile,
  type LoginKind,
  readLoginFile,
  takeRenewed,
  withoutRefreshTokens,
} from './login-file.ts'

/*
 * A run gets a copy of its program's login, without the refresh token: nothing that an agent writes there comes
 * back. No file shows whose refresh token it has, so one that a run could have changed is never taken back. Where a
 * login ends before the run, the program is first run with words of doorward's own and no tools; only that run
 * has the refresh token, and only the login that it has renewed is saved.
 */

/** The owner's login file, and the run's. */
export type LoginPlace = {
  readonly kind: LoginKind
  readonly owner: string
  readonly copy: string
  /** By which the program finds the copy. */
  readonly variables: Readonly<Record<string, string>>
  /** The file of Claude Code that has more than a login. */
  readonly more?: { readonly from: string; readonly to: string }
}

type Variables = Readonly<Record<string, string>>

/**
 * Where a program has its login, by the variables of its agent, and where in the folder of the run its copy is.
 * Undefined where the program uses its owner's folder: without a sandbox, unless it has a home of its own, and
 * Claude Code on macOS, which has its login in the keychain, under a name that depends on the folder.
 */
export const locateLogin = (
  kind: CliKind,
  { folder, env }: { readonly folder: string; readonly env: Variables },
  own: Variables,
  isSandboxed: boolean,
): LoginPlace | undefined => {
  if (!isSandboxed && kind !== 'codex') return undefined
  const home = getUserHome(env)
  const copies = join(folder, 'login')
  switch (kind) {
    case 'codex':
      return {
        kind,
        owner: join(env['CODEX_HOME'] || join(home, '.codex'), 'auth.json'),
        copy: join(own['CODEX_HOME'] ?? copies, 'auth.json'),
        variables: {},
      }
    case 'opencode':
      return {
        kind,
        owner: join(env['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'opencode', 'auth.json'),
        copy: join(copies, 'opencode', 'auth.json'),
        variables: { XDG_DATA_HOME: copies },
      }
    case 'claude': {
      if (process.platform === 'darwin') return undefined
      const { CLAUDE_CONFIG_DIR: named } = env
      return {
        kind,
        owner: join(named || join(home, '.claude'), '.credentials.json'),
        copy: join(copies, '.credentials.json'),
        variables: { CLAUDE_CONFIG_DIR: copies },
        more: { from: join(named || home, '.claude.json'), to: join(copies, '.claude.json') },
      }
    }
    default:
      return undefined
  }
}

/** `primaryApiKey` is the login of the console. The rest has projects, histories and MCP servers. */
const moreKeys = [
  'oauthAccount',
  'primaryApiKey',
  'customApiKeyResponses',
  'hasCompletedOnboarding',
]

/** Makes the copy: without refresh tokens, or with this content. */
export const copyLogin = async (place: LoginPlace, content?: LoginFile): Promise<void> => {
  const { kind, owner, copy, more } = place
  await mkdir(dirname(copy), { recursive: true, mode: 0o700 })
  const file = content ?? (await readLoginFile(owner))
  if (file)
    await writeFile(copy, JSON.stringify(content ?? withoutRefreshTokens(kind, file)), {
      mode: 0o600,
    })
  if (!more) return
  const all = parseJson(await readFile(more.from, 'utf8').catch(() => ''))
  const part = Object.entries(typeof all === 'object' && all !== null ? all : {}).filter(([key]) =>
    moreKeys.includes(key),
  )
  await writeFile(more.to, JSON.stringify(Object.fromEntries(part)), { mode: 0o600 })
}

/** Calls when the program has renewed a login in its copy; stops with the signal. */
export const watchCopy = (
  { kind, copy }: LoginPlace,
  signal: AbortSignal,
  onRenewed: () => void,
): void => {
  const isRenewed = ({ endsAt }: Login) => endsAt > Date.now()
  const check = async () => {
    const file = await readLoginFile(copy, true)
    if (file && listLogins(kind, file).some(isRenewed)) onRenewed()
  }
  try {
    // Without such events the program runs to its end.
    watch(dirname(copy), { signal }, () => void check().catch(() => undefined)).on(
      'error',
      () => undefined,
    )
  } catch {
    // ENOSPC: the system watches too many folders.
  }
}

/** Variables with which a program does not use its login. */
const otherLogins = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'CODEX_API_KEY',
]

export const usesLogin = (env: Variables): boolean => otherLogins.every((name) => !env[name])

/** The program regards a token as ended some minutes before its end. */
const marginMs = 10 * 60_000
/** Logins of some providers end after an hour: a longer run starts with what there is. */
const longestRunMs = 30 * 60_000
const shortestPauseMs = 60_000
const longestPauseMs = 24 * 60 * 60_000

type Attempt = { readonly failures: number; readonly againAt: number }

/** Renews the logins of this machine's agent programs, each by one run of its program at a time. */
export class LoginRenewals {
  readonly #withLock = createKeyedMutex()
  /** By file and refresh token. */
  readonly #attempts = new BoundedMap<string, Attempt>(100)
  readonly #refused = new Set<string>()

  /** The service did not accept a copy of this file: the next run renews it, whatever its end says. */
  noteRefused({ owner }: LoginPlace): void {
    this.#refused.add(owner)
  }

  /**
   * Renews what ends before a run of this length does. `run` runs the program with this file, which has refresh
   * tokens, and returns what the program left there. Throws `agent-failed` where that cannot be saved.
   */
  async renew(
    { kind, owner }: LoginPlace,
    runMs: number,
    run: (file: LoginFile) => Promise<LoginFile | undefined>,
  ): Promise<void> {
    await this.#withLock(owner, async () => {
      const file = await readLoginFile(owner)
      if (!file) return
      const due = this.#listDue(kind, owner, file, runMs)
      // A refresh token that is used and not saved ends the login.
      if (due.length === 0 || !(await isWritable(owner))) return
      const renewed = await run(asEnded(kind, file, due))
      const current = await readLoginFile(owner)
      const changed = current && renewed && takeRenewed(kind, current, due, renewed)
      if (changed) await save(kind, owner, changed)
      this.#note(owner, due, listLogins(kind, changed ?? current ?? {}))
    })
  }

  #listDue(kind: LoginKind, owner: string, file: LoginFile, runMs: number): Login[] {
    const now = Date.now()
    const endsBefore = this.#refused.has(owner)
      ? Number.POSITIVE_INFINITY
      : now + Math.min(runMs, longestRunMs) + marginMs
    return listLogins(kind, file).filter(
      (login) =>
        login.endsAt < endsBefore && (this.#attempts.get(toId(owner, login))?.againAt ?? 0) <= now,
    )
  }

  /** Waits before the next attempt, also where a login is shorter than a run; longer after each failure. */
  #note(owner: string, due: readonly Login[], current: readonly Login[]): void {
    this.#refused.delete(owner)
    for (const before of due) {
      const after = current.find(({ key }) => key === before.key)
      const isRenewed = after !== undefined && after.endsAt > before.endsAt
      const failures = isRenewed ? 0 : (this.#attempts.get(toId(owner, before))?.failures ?? 0) + 1
      const pauseMs = isRenewed
        ? marginMs
        : Math.min(shortestPauseMs * 2 ** (failures - 1), longestPauseMs)
      this.#attempts.set(toId(owner, after ?? before), {
        failures,
        againAt: Date.now() + pauseMs,
      })
    }
  }
}

const isWritable = async (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

const toId = (owner: string, { key, refreshToken }: Login): string =>
  [owner, key, refreshToken].join('\n')

/** The owner may have a link there, which stays, or a mount of the one file, as in a container. */
const save = async (kind: LoginKind, owner: string, file: LoginFile): Promise<void> => {
  const text = JSON.stringify(file, undefined, 2)
  try {
    await writeFileAtomic(await realpath(owner), text).catch(async (error: unknown) => {
      if (!['EBUSY', 'EACCES', 'EPERM'].includes(systemCode(error) ?? '')) throw error
      await writeFile(owner, text)
    })
  } catch (error) {
    const { program } = agentClis[kind]
    const message = `the login that ${program} has renewed cannot be saved in ${owner}: ${systemReason(error)}`
    throw toAgentError('agent-failed', message, { hint: `log in again with ${program}` })
  }
}
