import { shellWord } from './shell-word.ts'

// https://developers.google.com/identity/protocols/oauth2/scopes
const googlePrefix = 'https://www.googleapis.com/auth/'

/** Scopes for people: without the part that is the same in nearly all of Google's. */
export const shortScopes = (scopes: readonly string[]): string[] =>
  scopes.map((scope) =>
    scope.startsWith(googlePrefix) && scope !== googlePrefix
      ? scope.slice(googlePrefix.length)
      : scope,
  )

/** The command that asks for these scopes, in full and each once. */
export const loginCommand = (provider: string, scopes: readonly string[]): string =>
  `doorward oauth login ${shellWord(provider)} --scopes ${shellWord([...new Set(scopes)].join(','))}`
