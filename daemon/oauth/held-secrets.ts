import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readSecretFile } from '../../shared/home/home.ts'
import { listBots, readBot } from '../bots/bot-record.ts'
import type { HeldSecret } from '../delivery/secrets/held.ts'
import { listPending, readPending } from './logout/revocation-store.ts'
import type { TokenHome } from './tokens/keychain.ts'
import type { TokenRecord } from './tokens/token-record.ts'
import { readToken, tokenProviders } from './tokens/token-store.ts'

/**
 * Tokens of logins and of those that are being revoked, secrets of clients, and keys of bots, as the files have them
 * now. A file that cannot be read gives nothing: `problems` reports it.
 */
export const readHeldSecrets = async (
  home: TokenHome,
  unsaved: readonly TokenRecord[],
): Promise<HeldSecret[]> => {
  const records = await Promise.all(
    (await tokenProviders(home).catch(() => [])).map((name) =>
      readToken(home, name).catch(() => undefined),
    ),
  )
  const pending = await Promise.all(
    (await listPending(home).catch(() => [])).map((name) =>
      readPending(home, name).catch(() => undefined),
    ),
  )
  return [
    ...[...records, ...unsaved].flatMap((record) =>
      record ? ofTokens(record.provider, record) : [],
    ),
    ...pending.flatMap((one) =>
      one ? [...ofTokens(one.provider, one.tokens), ...ofClient(one.provider, one.client)] : [],
    ),
    ...(await readClients(home)),
    ...(await readBots(home)),
  ]
}

const ofTokens = (
  login: string,
  { accessToken, refreshToken }: Pick<TokenRecord, 'accessToken' | 'refreshToken'>,
): HeldSecret[] => [accessToken, refreshToken ?? ''].map((value) => toLoginToken(login, value))

export const toLoginToken = (login: string, value: string): HeldSecret => ({
  kind: 'login-token',
  name: `a token of ${login}`,
  value,
})

const ofClient = (
  login: string,
  { clientSecret }: { readonly clientSecret?: string | undefined },
): HeldSecret[] =>
  clientSecret === undefined
    ? []
    : [{ kind: 'client-secret', name: `the client secret of ${login}`, value: clientSecret }]

const readClients = async (home: TokenHome): Promise<HeldSecret[]> => {
  const files = await readdir(home.clients).catch(() => [])
  const clients = await Promise.all(
    files
      .filter((name) => name.endsWith('.json'))
      .map(async (name) => {
        const text = await readSecretFile(join(home.clients, name)).catch(() => undefined)
        return ofClient(name.replace(/\.json$/, ''), { clientSecret: readField(text) })
      }),
  )
  return clients.flat()
}

/** Files of bots are in the same folder; sealed ones are read below. */
const readField = (text: string | undefined): string | undefined => {
  try {
    const record = JSON.parse(text ?? '') as { readonly clientSecret?: unknown } | null
    return typeof record?.clientSecret === 'string' ? record.clientSecret : undefined
  } catch {
    return undefined
  }
}

const readBots = async (home: TokenHome): Promise<HeldSecret[]> => {
  const bots = await Promise.all(
    (await listBots(home)).map((slug) => readBot(home, slug).catch(() => undefined)),
  )
  return bots.flatMap((bot): HeldSecret[] =>
    bot
      ? [
          ...ofClient(`the bot ${bot.slug}`, bot),
          { kind: 'bot-key', name: `the key of the bot ${bot.slug}`, value: bot.privateKey },
        ]
      : [],
  )
}
