/** The file of a token as a login writes it, valid for `ms` milliseconds from now. */
export const storedToken = (provider: string, leftMs: number) => {
  const now = Date.now()
  return {
    version: 1,
    provider,
    account: null,
    scopes: ['a', 'b'],
    tokenType: 'Bearer',
    accessToken: 'x'.repeat(200),
    refreshToken: 'y',
    expiresAt: new Date(now + leftMs).toISOString(),
    obtainedAt: new Date(now).toISOString(),
    clientId: 'id',
  }
}

/** The entry in `providers:` of a provider of the bench; `origin` is where a new token is asked for. */
export const providerEntry = (origin: string): string =>
  `{ authorization_endpoint: "${origin}/a", token_endpoint: "${origin}/t" }`
