import type { Logout } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { type Note, bodyOf, loginKey, titleOf } from './note.ts'
import { providerTitle } from './wording.ts'

/** Revokes and removes the tokens of a provider, and tells what the provider made of it. */
export const logOut = async (
  client: Client,
  provider: string,
  show: (note: Note) => void,
): Promise<void> => {
  const path = `/oauth/tokens/${encodeURIComponent(provider)}`
  show(logoutNoteOf(await client.delete<Logout>(path, { timeoutMs: 60_000 })))
}

/** Never says more than the provider has confirmed. */
export const logoutNoteOf = ({ provider, revokedAtProvider, detail }: Logout): Note => {
  const name = providerTitle(provider)
  const key = loginKey(provider)
  const parts = detail?.split('; ') ?? []
  if (revokedAtProvider)
    return {
      title: titleOf(`logged out of ${name}`),
      body: bodyOf([`${name} confirmed the revocation`, ...parts].join('\n')),
      key,
    }
  const rest = parts.length > 0 ? parts : ['remove the access in your account there']
  return {
    title: titleOf(`logged out of ${name} on this machine`),
    body: bodyOf([`${name} did not confirm a revocation:`, ...rest].join('\n')),
    failure: true,
    key,
  }
}
