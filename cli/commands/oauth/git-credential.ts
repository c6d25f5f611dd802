import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken, TokenSummary } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import {
  type GitHost,
  gitHosts,
  type GitQuestion,
  hostAt,
} from '../../../shared/config/git-hosts.ts'
import { getProviderName, parseLogin } from '../../../shared/config/name-forms.ts'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, systemReason } from '../../../shared/home/home.ts'
import type { Context } from '../../context.ts'
import { fetchAccessToken } from '../../daemon-client/connect.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'

/** Longer than any token is valid. */
const forceRenewalSeconds = 30 * 24 * 60 * 60

/** git's own lines are short, except what a server sent (`wwwauth[]`). */
const maxInputBytes = 1024 * 1024

/**
 * One call by git (gitcredentials(7)): `get` prints name and password for GitHub's hosts and those of
 * `git_hosts`, and nothing for others, so that git asks its next helper. `erase` is how git reports that a
 * server refused a password: where it is the stored token, that is renewed. The daemon keeps the tokens, so
 * `store` and any later operation do nothing. Throws the daemon's error: git shows the message and asks the
 * user.
 */
export const gitCredential = async (
  context: Context,
  [operation = '']: string[],
): Promise<void> => {
  if (process.stdin.isTTY)
    context.terminal.say(
      'reading a credential request: protocol=https, host=github.com, an empty line',
    )
  const input = await readInput()
  if (operation !== 'get' && operation !== 'erase') return
  const question = readQuestion(input)
  const { password } = question
  if (operation === 'erase' && password === undefined) return
  const known = hostAt(question, gitHosts(await gatewayValue(context.home)))
  if (known === undefined) return
  const token = await withNextDaemon(
    context,
    async (client) => {
      const login = await findLogin(client, known.provider, question.username)
      const name = login ?? known.provider
      const options = { isExact: login !== undefined, gitOrigin: known.origin }
      const found = await fetchAccessToken(client, name, options)
      if (operation === 'erase' && constantTimeEqual(found.accessToken, password ?? ''))
        await fetchAccessToken(client, name, {
          ...options,
          minValiditySeconds: forceRenewalSeconds,
        })
      return { ...found, isAccountNamed: login !== undefined }
    },
    {
      reads: true,
    },
  )
  if (operation === 'get') process.stdout.write(toAnswer(question, known, token))
}

/**
 * The login that git's user name names: by its own name, else by the account's name at the provider, else by
 * the name of the account. Undefined for any other user name.
 */
const findLogin = async (
  client: Client,
  provider: string,
  username: string | undefined,
): Promise<string | undefined> => {
  if (username === undefined) return undefined
  const { tokens } = await client.get<{ tokens: TokenSummary[] }>('/oauth/tokens')
  const logins = tokens.filter((token) => getProviderName(token.provider) === provider)
  const name = username.toLowerCase()
  const found =
    logins.find((login) => login.provider === name) ??
    logins.find(({ account }) => account?.name.toLowerCase() === name) ??
    logins.find((login) => parseLogin(login.provider)?.account === name)
  return found?.provider
}

/**
 * Keeps git's user name. GitHub accepts any with a token (https://docs.github.com/en/get-started/git-basics);
 * GitLab wants `oauth2` (https://docs.gitlab.com/api/oauth2/#access-git-over-https-with-access-token), also
 * where git's user name has chosen the account.
 */
const toAnswer = (
  { username }: GitQuestion,
  { isNamed }: GitHost,
  { accessToken, expiresAt, isAccountNamed }: AccessToken & { readonly isAccountNamed: boolean },
): string => {
  const isOurs = isNamed && (username === undefined || isAccountNamed)
  return [
    `username=${isOurs ? 'oauth2' : (username ?? 'x-access-token')}`,
    `password=${accessToken}`,
    ...(expiresAt ? [`password_expiry_utc=${Math.floor(Date.parse(expiresAt) / 1000)}`] : []),
    '',
  ].join('\n')
}

/** Reads standard input up to an empty line or its end: git keeps it open until it has the answer. */
const readInput = async (): Promise<string> => {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin as AsyncIterable<string>) {
    text += chunk
    if (text.startsWith('\n') || text.includes('\n\n')) break
    if (text.length > maxInputBytes)
      throw new DoorwardError('usage', 'standard input is too long for a credential request')
  }
  return text
}

/** The content of gateway.yaml, unvalidated; undefined where it names no hosts. */
export const gatewayValue = async (home: Home): Promise<unknown> => {
  const path = join(home.config, 'gateway.yaml')
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return ''
    throw new DoorwardError('home-unusable', `cannot read ${path}: ${systemReason(error)}`)
  })
  // git calls twice per push, so the YAML parser is loaded only for a file that may name a host. Comment
  // lines name none; elsewhere a # may be part of a value, and a backslash part of a name.
  if (!/^(?![ \t]*#).*(token_endpoint|issuer|dialect|git_hosts|\\)/m.test(text)) return undefined
  const { readYaml } = await import('../../../shared/config/yaml.ts')
  const { value, problems } = readYaml(path, text)
  if (problems.length === 0) return value
  throw new DoorwardError(
    'config-invalid',
    `${path} cannot be read, so its git hosts are unknown`,
    {
      hint: 'doorward config check',
    },
  )
}

/**
 * Parses git's `key=value` lines up to an empty one; the last value of a key counts. Throws `usage` for
 * any other line, and for a control character in a value that is used.
 */
export const readQuestion = (text: string): GitQuestion & { readonly password?: string } => {
  const values = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '') break
    const at = line.indexOf('=')
    const isOurs = /^(protocol|host|username|password)=/.test(line)
    if (at < 1 || (isOurs && /[\u0000-\u001f\u007f]/.test(line)))
      throw new DoorwardError('usage', 'standard input is not a git credential request', {
        hint: 'lines such as protocol=https and host=github.com, then an empty one',
      })
    values.set(line.slice(0, at), line.slice(at + 1))
  }
  const username = values.get('username')
  const password = values.get('password')
  return {
    protocol: values.get('protocol') ?? '',
    host: values.get('host') ?? '',
    username: username === '' ? undefined : username,
    ...(password !== undefined && { password }),
  }
}
