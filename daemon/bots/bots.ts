import { randomBytes } from 'node:crypto'
import {
  type BotDetails,
  type BotInstallation,
  type BotSummary,
  type RotateBot,
  toBotPath,
  toBotSecretName,
} from '../../shared/api/bots.ts'
import type { AccessToken, StatusProblem } from '../../shared/api/api.ts'
import { DoorwardError, toStatusProblem } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { readSecretFile } from '../../shared/home/home.ts'
import { replaceSecret } from '../../shared/home/init-home.ts'
import { withConfigLock } from '../../shared/home/lock.ts'
import { toGitOrigin } from '../delivery/targets/github/github-api.ts'
import type { OAuthDependencies, TokenRequest } from '../oauth/dependencies.ts'
import type { CallbackServer } from '../oauth/login/callback-server.ts'
import { AccessLog } from '../oauth/tokens/token-broker.ts'
import { findProvider } from '../oauth/providers/providers.ts'
import { parsePrivateKey, requestAsApp, requestWithToken } from './app-api.ts'
import {
  type BotRecord,
  isTaken,
  listBots,
  parseBotName,
  readBot,
  removeBot,
  toBotLogin,
  writeBot,
} from './bot-record.ts'
import { BotCreations, type NewBot } from './create-bot.ts'
import { InstallationTokens, type Permissions } from './installation-tokens.ts'
import type { PastApi } from '../sender-apis/sender-api.ts'
import { textAt } from '../util/payload-path.ts'
import { createBotPast } from './deliveries.ts'

/** The permissions of a token where a request names nothing. */
const leastPermissions: Permissions = { contents: 'read' }
const githubApiUrl = 'https://api.github.com'
const perPage = 100

type BotParts = {
  readonly dependencies: OAuthDependencies
  readonly callback: CallbackServer
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

/**
 * The bots of the owner: GitHub Apps whose keys are on this machine. A bot is a login, `github@<slug>`, whose
 * tokens are minted for one repository and one step.
 */
export class Bots {
  readonly creations: BotCreations
  readonly #parts: BotParts
  readonly #tokens: InstallationTokens
  readonly #accessLog: AccessLog

  constructor(parts: BotParts) {
    this.#parts = parts
    const { gateway, loginTimeoutMs, announce } = parts.dependencies
    this.#accessLog = new AccessLog(announce)
    this.#tokens = new InstallationTokens(parts.signal)
    this.creations = new BotCreations({
      callback: parts.callback,
      apiUrl: () => findProvider('github', gateway).apiUrl ?? githubApiUrl,
      publicUrl: () => gateway.server.public_url,
      callbackPort: () => gateway.oauth.callback_port,
      isTaken: async (slug) => isTaken(parts.dependencies.home, slug),
      keep: (bot) => this.#keep(bot),
      signal: parts.signal,
      ...(loginTimeoutMs !== undefined && { timeoutMs: loginTimeoutMs }),
    })
  }

  /** The bot with this login; undefined where another login, or none, has the name. */
  async find(login: string): Promise<BotRecord | undefined> {
    if (!login.includes('@')) return undefined
    const slug = parseBotName(login)
    return slug === undefined ? undefined : readBot(this.#parts.dependencies.home, slug)
  }

  /**
   * A token for one repository. Throws `config-invalid` where it would go to another server than the bot's,
   * `repository-needed`, `bot-not-installed`, `bot-refused`.
   */
  async access(bot: BotRecord, request: TokenRequest): Promise<AccessToken> {
    const { repository, permissions = leastPermissions, minValidityMs, asker } = request
    const provider = toBotLogin(bot.slug)
    requireOwnServer(bot, request)
    const { count } = this.#parts.dependencies
    if (repository === undefined)
      throw new DoorwardError(
        'repository-needed',
        `${provider} is a bot: each of its tokens is for one repository`,
        {
          hint: 'name it by --repo OWNER/NAME, of oauth token and oauth exec',
          about: { provider },
        },
      )
    const { accessToken, expiresAt } = await this.#tokens
      .get(bot, { repository, permissions, minValidityMs })
      .catch((error: unknown) => {
        count?.('token-not-given', provider)
        throw error
      })
    count?.('token-given', provider)
    this.#accessLog.add(provider, asker)
    return {
      provider,
      accessToken,
      tokenType: 'bearer',
      expiresAt: new Date(expiresAt).toISOString(),
      scopes: Object.entries(permissions).map(([name, level]) => `${name}:${level}`),
    }
  }

  async list(): Promise<BotSummary[]> {
    const { home } = this.#parts.dependencies
    const bots: BotSummary[] = []
    for (const slug of await listBots(home)) {
      // `problems` reports a file that cannot be read.
      const record = await readBot(home, slug).catch(() => undefined)
      if (record) bots.push(toSummary(record))
    }
    return bots
  }

  /** Throws `bot-exists` for the login of a bot: another login of that name would take its file. */
  async refuseLogin(login: string): Promise<void> {
    const slug = login.includes('@') ? parseBotName(login) : undefined
    if (slug === undefined || !(await listBots(this.#parts.dependencies.home)).includes(slug))
      return
    throw new DoorwardError('bot-exists', `${login} is a bot, and no login of a person`, {
      hint: `doorward bot remove ${slug} forgets the bot; a login needs another name after --as`,
    })
  }

  /** The bot as GitHub has it now. */
  async show(name: string): Promise<BotDetails> {
    const bot = await this.get(name)
    const { signal } = this.#parts
    const { json } = await requestAsApp(bot, '/app', { signal })
    const { json: found } = await requestAsApp(bot, `/app/installations?per_page=${perPage}`, {
      signal,
    })
    const installations: BotInstallation[] = []
    for (const one of Array.isArray(found) ? (found as readonly unknown[]) : [])
      installations.push(await this.#readInstallation(bot, one))
    return {
      ...toSummary(bot),
      permissions: toTexts((json as { readonly permissions?: unknown }).permissions),
      events: toList((json as { readonly events?: unknown }).events),
      installations,
    }
  }

  /** Replaces the key, after GitHub has accepted the new one, or the secret of deliveries, at both ends. */
  async rotate(name: string, { privateKey, secret }: RotateBot): Promise<BotSummary> {
    const bot = await this.get(name)
    const { home } = this.#parts.dependencies
    const { signal } = this.#parts
    if (privateKey !== undefined) {
      parsePrivateKey(privateKey)
      const changed = { ...bot, privateKey }
      await requestAsApp(changed, '/app', { signal })
      await writeBot(home, changed)
      this.#tokens.forget(bot.slug)
    }
    if (secret) await this.#rotateSecret(bot)
    return toSummary(bot)
  }

  /** The deliveries that GitHub keeps of a bot, of all its repositories. */
  past(name: string): PastApi {
    return createBotPast(async () => this.get(name))
  }

  /** Makes GitHub send the deliveries of all its repositories there; false where it does so already. */
  async moveHook(bot: BotRecord, hookUrl: string): Promise<boolean> {
    if (bot.hookUrl === hookUrl) return false
    const { signal } = this.#parts
    await requestAsApp(bot, '/app/hook/config', {
      signal,
      method: 'PATCH',
      body: { url: hookUrl, content_type: 'json', insecure_ssl: '0' },
    })
    await writeBot(this.#parts.dependencies.home, { ...bot, hookUrl })
    return true
  }

  /** Forgets the bot here: GitHub deletes an App only on its page. */
  async remove(name: string): Promise<BotSummary> {
    const { home } = this.#parts.dependencies
    const slug = this.#toSlug(name)
    // A file that cannot be read can still be removed.
    const bot = await readBot(home, slug).catch(() => 'damaged' as const)
    if (bot === undefined) throw notFound(slug)
    this.#tokens.forget(slug)
    await removeBot(home, slug)
    if (bot !== 'damaged') return toSummary(bot)
    throw new DoorwardError(
      'token-file-damaged',
      `the file of ${slug} could not be read: it is removed`,
      {
        hint: 'the App may still be at GitHub: look under Settings > Developer settings > GitHub Apps',
      },
    )
  }

  /** Throws `bot-not-found`, and why its file cannot be read. */
  async get(name: string): Promise<BotRecord> {
    const slug = this.#toSlug(name)
    const bot = await readBot(this.#parts.dependencies.home, slug)
    if (bot) return bot
    throw notFound(slug)
  }

  async problems(): Promise<StatusProblem[]> {
    const { home } = this.#parts.dependencies
    const problems: StatusProblem[] = []
    for (const slug of await listBots(home))
      await readBot(home, slug).catch((error: unknown) => {
        if (!(error instanceof DoorwardError)) throw error
        problems.push(toStatusProblem(error))
      })
    return problems
  }

  #toSlug(name: string): string {
    const slug = parseBotName(name)
    if (slug !== undefined) return slug
    throw new DoorwardError('bot-not-found', 'this is not the name of a bot', {
      hint: 'doorward bot list',
    })
  }

  async #keep({ record, secret }: NewBot): Promise<BotSummary> {
    const { home, log } = this.#parts.dependencies
    // The key of another bot, or the client of a login, would be lost.
    if (await isTaken(home, record.slug))
      throw new DoorwardError(
        'bot-exists',
        `github made ${record.slug}, and there is a bot or a login github@${record.slug} here: the new App is not kept`,
        {
          hint: `delete it under Advanced at ${record.settingsUrl}, then: doorward bot create github --name ANOTHER`,
        },
      )
    await writeBot(home, record)
    if (secret !== undefined) await this.#keepSecret(record.slug, secret)
    log.info({ provider: toBotLogin(record.slug) }, 'a bot was made')
    const wanted = `${record.hookUrl.replace(/\/webhook\/[^/]*$/, '')}${toBotPath(record.slug)}`
    // Its owner may have changed the name at GitHub.
    if (record.hookUrl.includes('/webhook/') && record.hookUrl !== wanted)
      await this.moveHook(record, wanted).catch((error: unknown) => {
        const code = error instanceof DoorwardError ? error.code : undefined
        log.warn(
          { code, provider: toBotLogin(record.slug) },
          'its deliveries still have the old path',
        )
      })
    return toSummary(await this.get(record.slug))
  }

  /** First here: a delivery with the new secret may arrive before the answer to the request. */
  async #rotateSecret(bot: BotRecord): Promise<void> {
    const { home, reload } = this.#parts.dependencies
    const { signal } = this.#parts
    const before = (await readSecretFile(home.env)) ?? ''
    const secret = randomBytes(32).toString('hex')
    await this.#keepSecret(bot.slug, secret)
    try {
      const body = { secret }
      await requestAsApp(bot, '/app/hook/config', { signal, method: 'PATCH', body })
    } catch (error) {
      await withConfigLock(home, async () => writeFileAtomic(home.env, before))
      await reload?.()
      throw error
    }
  }

  async #keepSecret(slug: string, value: string): Promise<void> {
    const { home, reload } = this.#parts.dependencies
    await withConfigLock(home, async () => replaceSecret(home, toBotSecretName(slug), value))
    await reload?.()
  }

  async #readInstallation(bot: BotRecord, one: unknown): Promise<BotInstallation> {
    const { signal } = this.#parts
    const { id, suspended_at } = one as { readonly id?: unknown; readonly suspended_at?: unknown }
    const account = textAt(one, 'account', 'login') ?? 'unknown'
    const isAll = textAt(one, 'repository_selection') === 'all'
    const isSuspended = typeof suspended_at === 'string'
    if (isSuspended || typeof id !== 'number')
      return { account, isSuspended, isAll, repositories: [] }
    const { json: minted } = await requestAsApp(bot, `/app/installations/${id}/access_tokens`, {
      signal,
      body: { permissions: { metadata: 'read' } },
    })
    const { json } = await requestWithToken(
      bot.apiUrl,
      `/installation/repositories?per_page=${perPage}`,
      textAt(minted, 'token'),
      { signal },
    )
    const listed = (json as { readonly repositories?: unknown }).repositories
    const repositories = (Array.isArray(listed) ? (listed as readonly unknown[]) : []).flatMap(
      (repository) => textAt(repository, 'full_name') ?? [],
    )
    return { account, isSuspended, isAll, repositories }
  }
}

/** A token of a bot goes to the server that made the bot, whatever gateway.yaml says later. */
const requireOwnServer = (
  { slug, apiUrl }: BotRecord,
  { apiUrl: api, gitOrigin }: TokenRequest,
): void => {
  const own = toGitOrigin(apiUrl)
  const isOther = (api !== undefined && toGitOrigin(api) !== own) || (gitOrigin ?? own) !== own
  if (!isOther) return
  const { host } = new URL(api ?? gitOrigin ?? own)
  throw new DoorwardError(
    'config-invalid',
    `the bot ${slug} is at ${new URL(own).host}: ${host} gets no token of it`,
    {
      hint:
        api === undefined
          ? `name a login for ${host}: doorward config edit gateway`
          : `set targets.github.api_url to ${apiUrl}, or name another login: doorward config edit gateway`,
      about: { provider: toBotLogin(slug) },
    },
  )
}

const toSummary = (bot: BotRecord): BotSummary => ({
  name: bot.slug,
  login: toBotLogin(bot.slug),
  owner: bot.owner,
  can: bot.can,
  pageUrl: bot.pageUrl,
  settingsUrl: bot.settingsUrl,
  installUrl: `${bot.pageUrl}/installations/new`,
  hookUrl: bot.hookUrl,
  isReachable: !new URL(bot.hookUrl).hostname.endsWith('.invalid'),
  createdAt: bot.createdAt,
})

const notFound = (slug: string): DoorwardError =>
  new DoorwardError('bot-not-found', `there is no bot ${slug} here`, { hint: 'doorward bot list' })

const toTexts = (value: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(typeof value === 'object' && value !== null ? value : {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  )

const toList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
