import { basename } from 'node:path'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { getUserAgent } from '../../../shared/version.ts'
import type { Context } from '../../context.ts'
import { fetchAccessToken } from '../../daemon-client/connect.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'
import { execChild } from '../../exec-child.ts'
import {
  type BotTokenOptions,
  getTokenVariable,
  parseProviderName,
  toBotQuery,
  type ValidityOptions,
} from './token.ts'

/** Words after `--`; undefined without `--`. */
export type ExecOptions = ValidityOptions &
  BotTokenOptions & { readonly command: readonly string[] | undefined }

/**
 * Runs a command with fresh tokens in its environment and exits as it does. All tokens are fetched before
 * it starts; on any error nothing is started. Throws the daemon's error, `usage`, `command-not-found` or
 * `command-not-runnable`.
 */
export const exec = async (
  context: Context,
  words: readonly string[],
  { minValidity, command, ...ofBot }: ExecOptions,
): Promise<void> => {
  if (command === undefined) throw missingDashes()
  const [program, ...args] = command
  if (program === undefined) throw missing('the command is missing after --')
  if (words.length === 0) throw missing('a provider is missing before --')
  const requested = requestedTokens(words)
  // Only the command's name: its arguments may be secret.
  const asker = { ...context, userAgent: getUserAgent('cli', `oauth exec ${basename(program)}`) }
  const tokens = await withNextDaemon(
    asker,
    async (client) => {
      const names = [...new Set(requested.map(({ provider }) => provider))]
      // allSettled: no request may still run after another one failed.
      const results = await Promise.allSettled(
        names.map(async (name) =>
          fetchAccessToken(client, name, {
            minValiditySeconds: minValidity,
            // Only a bot's token is of a repository.
            ...(name.includes('@') && toBotQuery(ofBot)),
          }),
        ),
      )
      return new Map(names.map((name, index) => [name, unwrapToken(results[index])]))
    },
    { reads: true },
  )
  const added = requested.map(({ provider, variable }) => [variable, tokens.get(provider)] as const)
  await execChild(program, args, { ...process.env, ...Object.fromEntries(added) })
}

const unwrapToken = (
  result: PromiseSettledResult<{ readonly accessToken: string }> | undefined,
): string => {
  if (result?.status === 'fulfilled') return result.value.accessToken
  throw result?.reason
}

/** The error for a call without `--`. */
export const missingDashes = (): DoorwardError =>
  missing('-- is missing between the providers and the command')

const missing = (what: string): DoorwardError =>
  new DoorwardError('usage', what, {
    hint: 'for example: doorward oauth exec github -- gh api user',
  })

/** A provider and the environment variable for its token. */
type RequestedToken = { readonly provider: string; readonly variable: string }

/**
 * Parses `github` and `github@work` (for `GITHUB_TOKEN`) and `github=GH_TOKEN`. Throws `usage` for an invalid
 * variable name and for two tokens in one variable, `provider-unknown` for an invalid provider name.
 */
export const requestedTokens = (words: readonly string[]): RequestedToken[] => {
  const requested = words.map(requestedToken)
  for (const { variable } of requested) {
    const sharing = requested.filter((other) => other.variable === variable)
    if (sharing.length > 1)
      throw new DoorwardError(
        'usage',
        `${variable} is asked for twice: for ${sharing.map(({ provider }) => provider).join(' and ')}`,
        { hint: 'name another variable: <provider>=NAME' },
      )
  }
  return requested
}

const requestedToken = (word: string): RequestedToken => {
  const [, typed = '', given] = /^([^=]*)(?:=(.*))?$/s.exec(word) ?? []
  const provider = parseProviderName(typed)
  const variable = given ?? getTokenVariable(provider)
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(variable)) return { provider, variable }
  throw new DoorwardError(
    'usage',
    `"${toPlainLine(variable).slice(0, 80)}" cannot be the name of an environment variable`,
    { hint: `for example: doorward oauth exec ${provider}=API_TOKEN -- command` },
  )
}
