/** What was granted, as a provider words it. */
export type Granted = {
  readonly scopes: readonly string[]
  readonly hasRefreshToken: boolean
}

/**
 * What was asked for and not granted. A scope counts as granted too when one that was granted holds it
 * (`implied`, by the provider's dialect), and `offline_access` when a refresh token came (OpenID Connect
 * Core section 11). A provider that names no scope at all, as GitHub does for its GitHub Apps, does not
 * grant by scopes: then nothing is missing.
 */
export const missingScopes = (
  requested: readonly string[],
  { scopes, hasRefreshToken }: Granted,
  implied: Readonly<Record<string, readonly string[]>>,
): string[] => {
  if (scopes.length === 0) return []
  const granted = new Set(scopes)
  // A set is walked to its end, with what is added meanwhile.
  for (const scope of granted)
    for (const part of Object.hasOwn(implied, scope) ? (implied[scope] ?? []) : [])
      granted.add(part)
  if (hasRefreshToken) granted.add('offline_access')
  return [...new Set(requested)].filter((scope) => !granted.has(scope))
}
