import { DoorwardError } from '../shared/errors.ts'
import { plainLine } from '../shared/text.ts'
import { providerNameOf } from './provider-name.ts'

/** A token that a program wants, and the environment variable that it looks in. */
export type RequestedToken = { readonly provider: string; readonly variable: string }

/**
 * Reads `github`, for `GITHUB_TOKEN`, and `github=GH_TOKEN`. Throws `usage` for what no shell could
 * name a variable and for two tokens in one, `provider-unknown` for what can be no provider.
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
  const provider = providerNameOf(typed)
  const variable = given ?? `${provider.replaceAll('-', '_').toUpperCase()}_TOKEN`
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(variable)) return { provider, variable }
  throw new DoorwardError(
    'usage',
    `"${plainLine(variable).slice(0, 80)}" cannot be the name of an environment variable`,
    { hint: `for example: doorward oauth exec ${provider}=API_TOKEN -- command` },
  )
}
