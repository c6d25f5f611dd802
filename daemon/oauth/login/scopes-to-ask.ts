import { type TokenRecord, isLoginOver } from '../token/token-record.ts'

export type ScopesToAsk = {
  readonly scopes: readonly string[]
  /** True where somebody chose them for this login or the one before, in place of the provider's own. */
  readonly areScopesChosen: boolean
}

type Asking = {
  /** Of the request. */
  readonly chosen: readonly string[] | undefined
  readonly provider: { readonly scopes: readonly string[] }
  readonly client: { readonly clientId: string }
  readonly before: TokenRecord | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * What a login asks for: what it was told to; else what was chosen for a login of the same client that is
 * over, since a new one is to bring back what that one could; else what the provider has.
 */
export const scopesToAsk = ({ chosen, provider, client, before, now }: Asking): ScopesToAsk => {
  if (chosen) return { scopes: chosen, areScopesChosen: true }
  const again =
    before?.scopesChosen && before.clientId === client.clientId && isLoginOver(before, now)
      ? before.requestedScopes
      : undefined
  return { scopes: again ?? provider.scopes, areScopesChosen: again !== undefined }
}
