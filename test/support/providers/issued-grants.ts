import { createHash, randomBytes } from 'node:crypto'

/** Who has logged in at a fake provider, and what was allowed. */
export type IssuedGrant = {
  readonly person: string
  readonly scopes: readonly string[]
  /** Access tokens that have not been revoked, and when they expire; refresh tokens likewise. */
  readonly accessTokens: Map<string, number>
  readonly refreshTokens: Set<string>
}

/** What a code was given out for. */
export type IssuedCode = {
  readonly redirectUri: string
  readonly challenge: string | undefined
  /** Repeated in the id token. */
  readonly nonce?: string | undefined
  readonly person: string
  readonly scopes: readonly string[]
}

export type IssuedTokens = { readonly accessToken: string; readonly refreshToken?: string }

/** The memory of a fake provider: codes that work once, and grants with the tokens that live. */
export const createIssuedGrants = () => {
  const codes = new Map<string, IssuedCode>()
  const grants: IssuedGrant[] = []
  const now = (): number => Date.now()
  const byAccess = (token: string) =>
    grants.find(({ accessTokens }) => (accessTokens.get(token) ?? 0) > now())
  const byRefresh = (token: string) => grants.find((grant) => grant.refreshTokens.has(token))
  return {
    issueCode(code: IssuedCode): string {
      const text = randomText('')
      codes.set(text, code)
      return text
    },

    /** The code, which is used up with this, or undefined when there is none. */
    takeCode(text: string): IssuedCode | undefined {
      const code = codes.get(text)
      codes.delete(text)
      return code
    },

    open(person: string, scopes: readonly string[]): IssuedGrant {
      const grant = { person, scopes, accessTokens: new Map(), refreshTokens: new Set<string>() }
      grants.push(grant)
      return grant
    },

    /** Adds an access token that lives so many seconds, and a refresh token where it has a prefix. */
    addTokens(
      grant: IssuedGrant,
      prefixes: { readonly access: string; readonly refresh?: string | undefined },
      seconds = 10 ** 9,
    ): IssuedTokens {
      const accessToken = randomText(prefixes.access)
      grant.accessTokens.set(accessToken, now() + seconds * 1000)
      if (prefixes.refresh === undefined) return { accessToken }
      const refreshToken = randomText(prefixes.refresh)
      grant.refreshTokens.add(refreshToken)
      return { accessToken, refreshToken }
    },

    /** The grant of a live access token. */
    byAccess,
    /** The grant of a live refresh token. */
    byRefresh,
    /** The grant that a token belongs to, whether or not it has expired, but not revoked. */
    byToken: (token: string) =>
      grants.find((grant) => grant.accessTokens.has(token)) ?? byRefresh(token),
    isAlive: (token: string): boolean => Boolean(byAccess(token) ?? byRefresh(token)),

    /** Ends one token; false when it was none. */
    end(token: string): boolean {
      const ended = grants.map(
        (grant) => grant.accessTokens.delete(token) || grant.refreshTokens.delete(token),
      )
      return ended.includes(true)
    },

    /** Ends all tokens of a grant. */
    endGrant({ accessTokens, refreshTokens }: IssuedGrant): void {
      accessTokens.clear()
      refreshTokens.clear()
    },

    /** Ends all that a person has allowed. */
    endPerson(person: string): void {
      for (const grant of grants) if (grant.person === person) this.endGrant(grant)
    },

    /** Lets every access token expire now; refresh tokens live on. */
    expireAccessTokens: (): void => {
      for (const { accessTokens } of grants)
        for (const token of accessTokens.keys()) accessTokens.set(token, 0)
    },
  }
}

export type IssuedGrants = ReturnType<typeof createIssuedGrants>

/** True when the verifier belongs to the challenge of the code; RFC 7636 section 4.6. */
export const isVerifierOf = (challenge: string | undefined, verifier: string | null): boolean =>
  challenge === undefined
    ? true
    : createHash('sha256')
        .update(verifier ?? '')
        .digest('base64url') === challenge

/** Text that nobody can guess, so that a leak of it is found, behind what the provider begins it with. */
export const randomText = (prefix: string): string =>
  `${prefix}${randomBytes(20).toString('base64url')}`
