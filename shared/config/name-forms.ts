/* Which characters names have that come from a person or a provider and go into paths, headers and requests. */

/** Providers that need no entry in gateway.yaml. */
export const builtInProviders = [
  'google',
  'github',
  'slack',
  'microsoft',
  'gitlab',
  'linear',
  'notion',
  'atlassian',
  'discord',
  'spotify',
  'dropbox',
] as const
export type BuiltInProvider = (typeof builtInProviders)[number]

/** The name of a provider, which is that of a file and a part of a path too. */
export const providerNameForm = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** The name that a user gives to an account (`oauth login github --as work`); a part of a file name too. */
export const accountNameForm = /^[a-z0-9][a-z0-9-]{0,33}$/

/** Whose login: a provider, and the name of the account if it has one. */
export type LoginName = { readonly provider: string; readonly account?: string }

/** `github` or `github@work`. */
export const loginNameForm = /^([a-z0-9][a-z0-9_-]{0,63})(?:@([a-z0-9][a-z0-9-]{0,33}))?$/

/** Parses `github` or `github@work`; undefined for anything else. */
export const parseLogin = (text: string): LoginName | undefined => {
  const [, provider, account] = loginNameForm.exec(text) ?? []
  if (provider === undefined) return undefined
  return { provider, ...(account !== undefined && { account }) }
}

export const formatLogin = ({ provider, account }: LoginName): string =>
  account === undefined ? provider : `${provider}@${account}`

/** True for the name of a login, which is a safe file name too. */
export const isLoginName = (text: string): boolean => loginNameForm.test(text)

/** True for `owner/name` of a repository at GitHub, in which no segment leads elsewhere. */
export const isRepository = (text: string): boolean =>
  /^[A-Za-z0-9][A-Za-z0-9-]{0,38}\/(?!\.{1,2}$)[\w.-]{1,100}$/.test(text)

/** `github` for `github@work`. */
export const getProviderName = (login: string): string => parseLogin(login)?.provider ?? login

/** For `sort`: the accounts of a provider follow it. */
export const compareLogins = (one: string, other: string): number => {
  const [a, b] = [one.replace('@', ' '), other.replace('@', ' ')]
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The name of a header field, a token (RFC 9110 section 5.6.2). */
export const headerNameForm = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

/** One scope (RFC 6749 section 3.3). */
export const scopeForm = /^[\x21\x23-\x5b\x5d-\x7e]+$/
