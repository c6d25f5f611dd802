import { getProviderName, isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { AccessToken } from '../../../shared/api/api.ts'
import { findNearest, formatDuration, toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { fetchAccessToken } from '../../daemon-client/connect.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'

export type ValidityOptions = {
  /** Seconds. */
  readonly minValidity?: number
}

/** The repository of a bot's token, and what it may do there. */
export type BotTokenOptions = {
  readonly repo?: string
  readonly permission?: readonly string[]
}

type TokenOptions = ValidityOptions & BotTokenOptions & { readonly format?: string }

/** This is how the daemon is asked. */
export const toBotQuery = ({ repo, permission }: BotTokenOptions) => ({
  repository: repo,
  permissions: permission?.join(','),
})

type Format = 'token' | 'json' | 'header' | 'header-json' | 'env'

/** Each is one line, since `fetchAccessToken` returns no token with a line break. */
const formats: Readonly<Record<Format, (answer: AccessToken, provider: string) => string>> = {
  token: ({ accessToken }) => accessToken,
  json: (answer) => JSON.stringify(answer, null, 2),
  header: ({ accessToken }) => `Authorization: Bearer ${accessToken}`,
  'header-json': ({ accessToken }) => JSON.stringify({ Authorization: `Bearer ${accessToken}` }),
  env: (answer, provider) => `${getTokenVariable(provider)}=${toWord(answer)}`,
}

export const tokenFormats = Object.keys(formats)

/**
 * Prints a fresh access token alone or in another format; `--json` is the daemon's whole answer. Throws `not-logged-in` or
 * `needs-login` (exit code 4), or `provider-unavailable`.
 */
export const printToken = async (
  context: Context,
  [typed = '']: string[],
  { minValidity, format = context.terminal.json ? 'json' : 'token', ...ofBot }: TokenOptions,
): Promise<void> => {
  const { terminal } = context
  const write = getFormat(format, terminal.json)
  const provider = parseProviderName(typed)
  const answer = await withNextDaemon(
    context,
    async (client) =>
      fetchAccessToken(client, provider, {
        minValiditySeconds: minValidity,
        ...toBotQuery(ofBot),
      }),
    { reads: true },
  )
  const left = answer.expiresAt ? Date.parse(answer.expiresAt) - Date.now() : Infinity
  // Some providers issue no token that is valid for so long.
  if (minValidity !== undefined && left < minValidity * 1000)
    terminal.say(`warning: this token of ${provider} is valid for ${formatDuration(left)} only`)
  if (format === 'json') terminal.printJson(answer)
  else terminal.print(write(answer, provider))
}

const getFormat = (format: string, isJson: boolean) => {
  if (!isFormat(format)) {
    const nearest = findNearest(format, tokenFormats)
    throw new DoorwardError('usage', `"${toPlainLine(format).slice(0, 80)}" is not a format`, {
      hint:
        nearest === undefined
          ? `formats are ${tokenFormats.join(', ')}`
          : `did you mean "${nearest}"?`,
    })
  }
  if (isJson && format !== 'json')
    throw new DoorwardError('usage', `--json and --format ${format} are two formats: use one`)
  return formats[format]
}

const isFormat = (text: string): text is Format => Object.hasOwn(formats, text)

/** A token that a shell and an env file read as it is written. */
const toWord = ({ accessToken, provider }: AccessToken): string => {
  if (/^[\w.~+/=:@%,-]+$/.test(accessToken)) return accessToken
  throw new DoorwardError(
    'usage',
    `the token of ${toPlainLine(provider)} has characters that cannot be in a line of env`,
    { hint: `doorward oauth exec ${toPlainLine(provider)} -- command` },
  )
}

/** `GITHUB_TOKEN`: programs look for the variable of the provider, whichever account it is. */
export const getTokenVariable = (provider: string): string =>
  `${getProviderName(provider).replaceAll('-', '_').toUpperCase()}_TOKEN`

/**
 * Validates the name of a provider, or of an account such as `github@work`, before it becomes part of a path
 * or a variable name. Throws `provider-unknown`.
 */
export const parseProviderName = (typed: string): string => {
  if (isLoginName(typed)) return typed
  const lower = typed.toLowerCase()
  throw new DoorwardError(
    'provider-unknown',
    `"${toPlainLine(typed).slice(0, 80)}" is not the name of a provider`,
    {
      hint: isLoginName(lower)
        ? `did you mean "${lower}"?`
        : 'names are those of doorward help providers, and those under providers: in gateway.yaml; github@work is an account (a-z, 0-9 and -, at most 34)',
    },
  )
}
