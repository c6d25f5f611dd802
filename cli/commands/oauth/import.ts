import { execFile } from 'node:child_process'
import type { ImportedLogin } from '../../../shared/api/api.ts'
import { gitHosts } from '../../../shared/config/git-hosts.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm } from '../../terminal/input.ts'
import { gatewayValue } from './git-credential.ts'
import { loginBefore, toLoginName } from './login.ts'

/** gh may ask a keychain, which may ask its user. */
const ghLimitMs = 60_000

export type ImportOptions = {
  /** The name of the account. */
  readonly as?: string
  readonly yes?: boolean
}

/**
 * Takes over the login of the GitHub CLI: gh prints its token, and the daemon checks and stores it. Throws
 * `usage`, `command-not-found` without gh, `not-logged-in` where gh gives no token, or the daemon's error.
 */
export const importLogin = async (
  context: Context,
  [from = '']: string[],
  { as, yes = false }: ImportOptions,
): Promise<void> => {
  const { terminal, home } = context
  if (from !== 'gh')
    throw new DoorwardError('usage', 'gh is the only program to import from', {
      hint: 'doorward oauth import gh',
    })
  const provider = toLoginName('github', as)
  const host = getGitHubHost(await gatewayValue(home))
  const permission = {
    question: `Store the token that gh has for ${host} as ${provider}, for the programs that ask doorward?`,
    refusal: 'this copies the token of gh, and there is no terminal to ask',
    interrupted: 'nothing was imported',
  }
  const before = await withDaemon(context, (client) => loginBefore(client, provider))
  if (before) terminal.say(before)
  if (!yes && !(await confirm(permission, terminal))) return terminal.say('nothing was imported')
  const accessToken = await askGh(host)
  const body = { provider, accessToken }
  const answer = await withDaemon(context, (client) =>
    client.post<ImportedLogin>('/oauth/import', body, { timeoutMs: 60_000 }),
  )
  if (terminal.json) return terminal.printJson(answer)
  const { account, scopes, expiresAt, replaced, sameAccountAs } = answer
  terminal.print(`logged in to ${provider} as ${toPlainLine(account.name)}, with the token of gh`)
  if (replaced)
    terminal.warn(`replaced: you were logged in to ${provider} as ${toPlainLine(replaced.name)}`)
  if (sameAccountAs !== undefined)
    terminal.warn(`warning: ${toPlainLine(sameAccountAs)} is a login of the same account`)
  if (scopes.length > 0) terminal.say(`scopes: ${toPlainLine(scopes.join(', '))}`)
  if (expiresAt !== undefined) terminal.say(`expires: ${toPlainLine(expiresAt)}`)
  terminal.say('it ends when gh gets another token or logs out; then import it again')
}

/** The host whose token the provider `github` may get; a stand-in on loopback counts as github.com. */
const getGitHubHost = (gateway: unknown): string => {
  const hosts = gitHosts(gateway)
    .filter(({ provider, isNamed }) => provider === 'github' && !isNamed)
    .map(({ origin }) => new URL(origin).host)
  const host = hosts.includes('github.com') ? 'github.com' : hosts[0]
  if (host !== undefined) return host
  throw new DoorwardError('provider-misconfigured', 'the host of github is not known', {
    hint: 'check token_endpoint of providers.github in gateway.yaml',
  })
}

const askGh = async (host: string): Promise<string> => {
  const wayOut = 'gh auth login, then run this again; or: doorward oauth login github'
  const token = await new Promise<string>((resolve, reject) => {
    const options = { timeout: ghLimitMs, killSignal: 'SIGKILL', encoding: 'utf8' } as const
    const child = execFile(
      'gh',
      ['auth', 'token', '--hostname', host],
      options,
      (error, stdout, stderr) => {
        // Not the error as a cause: it may hold what gh printed.
        if (error) reject(toGhError(error, stderr, host, wayOut))
        else resolve(stdout.trim())
      },
    )
    child.stdin?.end()
  })
  if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token
  throw new DoorwardError('not-logged-in', `gh gave no token for ${host}`, { hint: wayOut })
}

const toGhError = (
  error: Error & { readonly killed?: boolean },
  stderr: string,
  host: string,
  wayOut: string,
): DoorwardError => {
  const code = systemCode(error)
  if (code === 'ENOENT')
    return new DoorwardError(
      'command-not-found',
      'gh, the GitHub CLI, is not installed or not in PATH',
      {
        hint: 'install it from https://cli.github.com, or: doorward oauth login github',
      },
    )
  if (code === 'EACCES')
    return new DoorwardError('command-not-runnable', 'gh cannot be run: permission denied', {
      hint: 'which gh',
    })
  if (error.killed)
    return new DoorwardError('not-logged-in', 'gh did not answer in a minute', {
      hint: 'does "gh auth token" wait for a keychain? Unlock it, then run this again',
    })
  const said = toPlainLine(stderr.trim().split('\n')[0] ?? '')
    .replaceAll(/\b(gh[a-z]_|github_pat_)\w+/g, '…')
    .slice(0, 200)
  return new DoorwardError(
    'not-logged-in',
    `gh gave no token for ${host}${said === '' ? '' : `: ${said}`}`,
    { hint: wayOut },
  )
}
