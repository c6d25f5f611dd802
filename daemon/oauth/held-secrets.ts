import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readSecretFile } from '../../shared/home/home.ts'
import { listBots, readBot } from '../bots/bot-record.ts'
import type { HeldSecret } from '../delivery/secrets/held.ts'
import { listPending, readPending } from './logout/revocation-store.ts'
import type { TokenHome } from './tokens/keychain.ts'
import type { TokenRecord } from './tokens/token-record.ts'
import { readToken, tokenProviders } from './tokens/token-store.ts'

type Read = {
  readonly secrets: readonly HeldSecret[]
  /** Changes with each file that is written; undefined where it cannot be trusted. */
  readonly version: string | undefined
}

/** A file system may give two writes within this time, in milliseconds, one time stamp. */
const stampMs = 100

/**
 * Reads the secrets of the files when one of their folders has changed, and else returns the same list: every answer
 * asks for them. Each file is replaced as a whole, which changes its folder.
 */
export class HeldFiles {
  readonly #home: TokenHome
  #last: Read | undefined

  constructor(home: TokenHome) {
    this.#home = home
  }

  async read(): Promise<readonly HeldSecret[]> {
    const version = await this.#version()
    if (version !== undefined && version === this.#last?.version) return this.#last.secrets
    const { secrets, isWhole } = await readHeldSecrets(this.#home)
    this.#last = { secrets, version: isWhole ? version : undefined }
    return secrets
  }

  async #version(): Promise<string | undefined> {
    const { tokens, clients } = this.#home
    const folders = [tokens, join(tokens, 'revoke'), clients]
    const times = await Promise.all(
      folders.map(async (folder) => (await stat(folder).catch(() => undefined))?.mtimeMs ?? 0),
    )
    return Math.max(...times) > Date.now() - stampMs ? undefined : times.join(' ')
  }
}

/**
 * Tokens of logins and of those that are being revoked, secrets of clients, and keys of bots, as the files have them
 * now. A file that cannot be read gives nothing: `problems` reports it.
 */
const readHeldSecrets = async (
  home: TokenHome,
): Promise<{ readonly secrets: HeldSecret[]; readonly isWhole: boolean }> => {
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
  const bots = await readBots(home)
  const secrets = [
    ...records.flatMap((record) => (record ? ofTokens(record.provider, record) : [])),
    ...pending.flatMap((one) =>
      one ? [...ofTokens(one.provider, one.tokens), ...ofClient(one.provider, one.client)] : [],
    ),
    ...(await readClients(home)),
    ...ofBots(bots),
  ]
  // A keychain may be unlocked later.
  const isWhole = [...records, ...pending, ...bots].every((record) => record !== undefined)
  return { secrets, isWhole }
}

export const ofTokens = (
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

const readBots = async (home: TokenHome) =>
  Promise.all(
    (await listBots(home)).map(async (slug) => readBot(home, slug).catch(() => undefined)),
  )

const ofBots = (bots: Awaited<ReturnType<typeof readBots>>): HeldSecret[] =>
  bots.flatMap((bot): HeldSecret[] =>
    bot
      ? [
          ...ofClient(`the bot ${bot.slug}`, bot),
          { kind: 'bot-key', name: `the key of the bot ${bot.slug}`, value: bot.privateKey },
        ]
      : [],
  )
