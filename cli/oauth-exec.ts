import { basename } from 'node:path'
import { DoorwardError } from '../shared/errors.ts'
import { userAgentOf } from '../shared/version.ts'
import { accessTokenOf } from './access-token.ts'
import type { Context } from './context.ts'
import type { TokenOptions } from './oauth-token.ts'
import { withNextDaemon } from './reach-daemon.ts'
import { requestedTokens } from './requested-tokens.ts'
import { runInOurPlace } from './run-in-our-place.ts'

/** What stands after `--`: undefined when there is no `--`. */
export type ExecOptions = TokenOptions & { readonly command: readonly string[] | undefined }

/**
 * Runs a command with fresh tokens in its environment, and ends as it ends. All tokens are there before
 * it starts: throws what the daemon refuses the first of them with, `usage`, `command-not-found` or
 * `command-not-runnable`, and then nothing was started.
 */
export const exec = async (
  context: Context,
  words: readonly string[],
  { minValidity, command }: ExecOptions,
): Promise<void> => {
  if (command === undefined) throw missingDashes()
  const [program, ...args] = command
  if (program === undefined) throw missing('the command is missing after --')
  if (words.length === 0) throw missing('a provider is missing before --')
  const requested = requestedTokens(words)
  // Of the command its name alone: arguments may be anything.
  const asker = { ...context, userAgent: userAgentOf('cli', `oauth exec ${basename(program)}`) }
  const tokens = await withNextDaemon(
    asker,
    async (client) => {
      const names = [...new Set(requested.map(({ provider }) => provider))]
      // Each its own way to an end: a request of one that failed must not outlive the others.
      const results = await Promise.allSettled(
        names.map(async (name) => accessTokenOf(client, name, minValidity)),
      )
      return new Map(names.map((name, index) => [name, valueOf(results[index])]))
    },
    { reads: true },
  )
  const added = requested.map(({ provider, variable }) => [variable, tokens.get(provider)] as const)
  await runInOurPlace(program, args, { ...process.env, ...Object.fromEntries(added) })
}

const valueOf = (
  result: PromiseSettledResult<{ readonly accessToken: string }> | undefined,
): string => {
  if (result?.status === 'fulfilled') return result.value.accessToken
  throw result?.reason
}

/** What is wrong with a call without `--`. */
export const missingDashes = (): DoorwardError =>
  missing('-- is missing between the providers and the command')

const missing = (what: string): DoorwardError =>
  new DoorwardError('usage', what, {
    hint: 'for example: doorward oauth exec github -- gh api user',
  })
