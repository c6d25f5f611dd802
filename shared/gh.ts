import { execFile } from 'node:child_process'
import { gitHosts } from './config/git-hosts.ts'
import { DoorwardError, systemCode } from './errors.ts'
import { toPlainLine } from './text.ts'

/* The login of gh, the GitHub CLI. */

/** gh may ask a keychain, which may ask its user. */
const ghLimitMs = 60_000

/** The host whose token the provider `github` may get; a stand-in on loopback counts as github.com. */
export const getGitHubHost = (gateway: unknown): string => {
  const hosts = gitHosts(gateway)
    .filter(({ provider, isNamed }) => provider === 'github' && !isNamed)
    .map(({ origin }) => new URL(origin).host)
  const host = hosts.includes('github.com') ? 'github.com' : hosts[0]
  if (host !== undefined) return host
  throw new DoorwardError('provider-misconfigured', 'the host of github is not known', {
    hint: 'check token_endpoint of providers.github in gateway.yaml',
  })
}

/** The token that gh has for this host. Throws `command-not-found`, `not-logged-in`. */
export const askGh = async (host: string): Promise<string> => {
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
