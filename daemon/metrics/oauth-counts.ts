import type { OAuthCount } from '../oauth/dependencies.ts'

/** How often each thing happened to the tokens of each provider. */
export type OAuthCounts = {
  readonly count: (what: OAuthCount, provider: string) => void
  readonly all: () => readonly {
    readonly what: OAuthCount
    readonly provider: string
    readonly times: number
  }[]
}

/** All at zero. */
export const createOAuthCounts = (): OAuthCounts => {
  const counts = new Map<OAuthCount, Map<string, number>>()
  return {
    count: (what, provider) => {
      const byProvider = counts.get(what) ?? new Map<string, number>()
      counts.set(what, byProvider)
      byProvider.set(provider, (byProvider.get(provider) ?? 0) + 1)
    },
    all: () =>
      [...counts].flatMap(([what, byProvider]) =>
        [...byProvider].map(([provider, times]) => ({ what, provider, times })),
      ),
  }
}
