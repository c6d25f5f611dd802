import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { BoundedMap } from '../util/collections.ts'
import { textAt } from '../util/payload-path.ts'
import { reasonOf, requestAsApp } from './app-api.ts'
import { type BotRecord, toBotLogin } from './bot-record.ts'

/** The permissions of a token: `{contents: 'read'}`; names and levels are GitHub's. */
export type Permissions = Readonly<Record<string, 'read' | 'write'>>

export type MintedToken = {
  readonly accessToken: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  readonly permissions: Permissions
}

type Wanted = {
  /** `owner/name` */
  readonly repository: string
  readonly permissions: Permissions
  /** How long it must be valid, in milliseconds; more than it can be: a new one. */
  readonly minValidityMs?: number | undefined
}

/** A token is used until this long before its end. */
const spareMs = 5 * 60_000
const lifeMs = 60 * 60_000
const maxTokens = 500

/**
 * Tokens of a bot, each for one repository and the permissions of one step, valid for an hour:
 * docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app. They stay in memory.
 */
export class InstallationTokens {
  readonly #signal: AbortSignal
  readonly #tokens = new BoundedMap<string, MintedToken>(maxTokens)
  readonly #minting = new Map<string, Promise<MintedToken>>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Throws `bot-not-installed`, `bot-refused`, `provider-unavailable`. */
  async get(bot: BotRecord, wanted: Wanted): Promise<MintedToken> {
    const key = toKey(bot, wanted)
    const known = this.#tokens.get(key)
    const leftMs = (known?.expiresAt ?? 0) - Date.now()
    // A clock that was set back makes a token look as if it were valid for longer than any is.
    if (
      known &&
      leftMs > Math.max(spareMs, wanted.minValidityMs ?? 0) &&
      leftMs <= lifeMs + spareMs
    )
      return known
    const running = this.#minting.get(key)
    if (running) return running
    const minting = mint(bot, wanted, this.#signal)
      .then((token) => {
        this.#tokens.set(key, token)
        return token
      })
      .finally(() => this.#minting.delete(key))
    this.#minting.set(key, minting)
    return minting
  }

  /** Forgets the tokens of a bot that was removed or has another key. */
  forget(slug: string): void {
    for (const key of this.#tokens.keys()) if (key.startsWith(`${slug}\n`)) this.#tokens.delete(key)
  }
}

const toKey = ({ slug, appId }: BotRecord, { repository, permissions }: Wanted): string => {
  const levels = Object.entries(permissions).map(([name, level]) => `${name}:${level}`)
  return [slug, appId, repository.toLowerCase(), ...levels.toSorted()].join('\n')
}

const mint = async (
  bot: BotRecord,
  { repository, permissions }: Wanted,
  signal: AbortSignal,
): Promise<MintedToken> => {
  const installation = await findInstallation(bot, repository, signal)
  const [, name = ''] = repository.split('/')
  const response = await requestAsApp(bot, `/app/installations/${installation}/access_tokens`, {
    signal,
    body: { repositories: [name], permissions },
    handles: [403, 404, 422],
  })
  const { status, json } = response
  if (status === 404) throw notInstalled(bot, repository)
  if (status >= 300) throw refusedToken(bot, repository, permissions, reasonOf(response))
  const accessToken = textAt(json, 'token') ?? ''
  const expiresAt = Date.parse(textAt(json, 'expires_at') ?? '')
  if (!/^[\x21-\x7e]{1,16384}$/.test(accessToken) || Number.isNaN(expiresAt))
    throw new DoorwardError('bot-refused', 'github answered without a token', { hint: 'try again' })
  return { accessToken, expiresAt, permissions }
}

/** The number of the installation that has this repository. */
const findInstallation = async (
  bot: BotRecord,
  repository: string,
  signal: AbortSignal,
): Promise<number> => {
  const { status, json } = await requestAsApp(bot, `/repos/${repository}/installation`, {
    signal,
    handles: [301, 307, 404],
  })
  if (status === 301 || status === 307)
    throw new DoorwardError(
      'bot-refused',
      `the repository ${repository} was renamed or moved at GitHub`,
      { hint: 'use its new name', about: { provider: toBotLogin(bot.slug) } },
    )
  if (status === 404) throw notInstalled(bot, repository)
  if (typeof json['suspended_at'] === 'string')
    throw new DoorwardError(
      'bot-refused',
      `the installation of ${bot.slug} that has ${repository} is suspended at GitHub`,
      {
        hint: 'its owner can unsuspend it under Settings > GitHub Apps',
        about: { provider: toBotLogin(bot.slug) },
      },
    )
  const { id } = json
  if (typeof id === 'number' && Number.isSafeInteger(id)) return id
  throw new DoorwardError('bot-refused', 'github names no installation', { hint: 'try again' })
}

const notInstalled = ({ slug }: BotRecord, repository: string): DoorwardError =>
  new DoorwardError('bot-not-installed', `the bot ${slug} is not installed in ${repository}`, {
    hint: `doorward bot install ${slug}`,
    about: { provider: toBotLogin(slug) },
  })

const refusedToken = (
  { slug, settingsUrl }: BotRecord,
  repository: string,
  permissions: Permissions,
  said: string | undefined,
): DoorwardError => {
  const wanted = describePermissions(permissions)
  const why = said === undefined ? '' : `: ${said}`
  return new DoorwardError(
    'bot-refused',
    `github gives ${slug} no token for ${toPlainLine(repository)} with ${wanted}${why}`,
    {
      hint: `give it that permission at ${settingsUrl}/permissions, then accept it where it is installed: doorward bot install ${slug}`,
      about: { provider: toBotLogin(slug) },
    },
  )
}

/** `contents: read, checks: write` */
export const describePermissions = (permissions: Permissions): string =>
  Object.entries(permissions)
    .map(([name, level]) => `${name}: ${level}`)
    .join(', ')
