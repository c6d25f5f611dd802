import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessToken } from '../shared/api.ts'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { type Home, systemReason } from '../shared/home/home.ts'
import { accessTokenOf } from './access-token.ts'
import type { Context } from './context.ts'
import { type GitQuestion, gitHosts, providerAt, readQuestion } from './git-hosts.ts'
import { withNextDaemon } from './reach-daemon.ts'

/** git's own lines are short, but for what a server sent it (`wwwauth[]`). */
const maxInputBytes = 1024 * 1024

/**
 * One call by git (gitcredentials(7)): `get` prints name and password for the hosts of github, and
 * nothing for any other, so that git asks its next helper. The tokens are kept by the daemon, so
 * `store`, `erase` and what later versions of git may call have nothing to do. Throws what the daemon
 * refuses a token with: git shows the message, goes on, and asks the person.
 */
export const gitCredential = async (
  context: Context,
  [operation = '']: string[],
): Promise<void> => {
  if (process.stdin.isTTY)
    context.terminal.say(
      'reading what git would ask: protocol=https, host=github.com, an empty line',
    )
  const input = await readInput()
  if (operation !== 'get') return
  const question = readQuestion(input)
  const provider = providerAt(question, gitHosts(await gatewayValue(context.home)))
  if (provider === undefined) return
  const token = await withNextDaemon(context, async (client) => accessTokenOf(client, provider), {
    reads: true,
  })
  process.stdout.write(answerOf(question, token))
}

/** Any name will do with a token (https://docs.github.com/en/get-started/git-basics); git's own stays. */
const answerOf = ({ username }: GitQuestion, { accessToken, expiresAt }: AccessToken): string =>
  [
    `username=${username ?? 'x-access-token'}`,
    `password=${accessToken}`,
    ...(expiresAt ? [`password_expiry_utc=${Math.floor(Date.parse(expiresAt) / 1000)}`] : []),
    '',
  ].join('\n')

/** Standard input up to an empty line or its end: git keeps it open until we have answered. */
const readInput = async (): Promise<string> => {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin as AsyncIterable<string>) {
    text += chunk
    if (text.startsWith('\n') || text.includes('\n\n')) break
    if (text.length > maxInputBytes)
      throw new DoorwardError('usage', 'standard input is too long for a question of git')
  }
  return text
}

/** What gateway.yaml says, unchecked; undefined where it says nothing of hosts. */
const gatewayValue = async (home: Home): Promise<unknown> => {
  const path = join(home.config, 'gateway.yaml')
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return ''
    throw new DoorwardError('home-unusable', `cannot read ${path}: ${systemReason(error)}`)
  })
  // git calls twice for each push: the reader of YAML is loaded for a file that needs it only. A line that
  // begins with # names no host; elsewhere a # may be part of a value, and a backslash of a name.
  if (!/^(?![ \t]*#).*(authorization_endpoint|issuer|dialect|\\)/m.test(text)) return undefined
  const { readYaml } = await import('../shared/config/yaml.ts')
  const { value, problems } = readYaml(path, text)
  if (problems.length === 0) return value
  throw new DoorwardError('config-invalid', `${path} cannot be read, so no host is known`, {
    hint: 'doorward config check',
  })
}
