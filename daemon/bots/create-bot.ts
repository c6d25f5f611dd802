import { randomBytes } from 'node:crypto'
import {
  type BotCreation,
  type BotSummary,
  botSlugForm,
  type CreateBot,
  toBotPath,
} from '../../shared/api/bots.ts'
import { constantTimeEqual } from '../../shared/constant-time.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { toGitOrigin } from '../delivery/targets/github/github-api.ts'
import type { Page } from '../oauth/login/callback-page.ts'
import type { CallbackServer, Lease } from '../oauth/login/callback-server.ts'
import { waitToBeCalled } from '../util/concurrency.ts'
import { BoundedMap } from '../util/collections.ts'
import { knownError } from '../util/assets.ts'
import { textAt } from '../util/payload-path.ts'
import { parsePrivateKey, requestWithToken } from './app-api.ts'
import type { BotRecord } from './bot-record.ts'
import { loadBotPage, renderUsed } from './bot-page.ts'
import { suggestName, toHookUrl, toManifest, toSlug } from './manifest.ts'

/** The address to which GitHub leads back, at the listener of logins. */
export const botCallbackPath = '/bot/callback'
const host = '127.0.0.1'
const maxKept = 20
const usualTimeoutMs = 10 * 60_000

/** A bot that GitHub has just made, and the secret of its deliveries. */
export type NewBot = { readonly record: BotRecord; readonly secret: string | undefined }

type CreationParts = {
  readonly callback: CallbackServer
  /** Where `github` has its API: a stand-in or an enterprise may have another. */
  readonly apiUrl: () => string
  readonly publicUrl: () => string | undefined
  readonly callbackPort: () => number
  /** Whether a bot or a login has this name. */
  readonly isTaken: (slug: string) => Promise<boolean>
  /** Keeps it on the disk, and makes its deliveries arrive at its own path. */
  readonly keep: (bot: NewBot) => Promise<BotSummary>
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

type Entry = {
  readonly id: string
  readonly state: string
  readonly request: CreateBot
  readonly apiUrl: string
  readonly hookUrl: string
  readonly expiresAt: number
  readonly lease: Lease
  /** The path of its page. */
  readonly page: string
  readonly timer: NodeJS.Timeout
  isUsed: boolean
  outcome: Pick<BotCreation, 'status' | 'bot' | 'error'>
  readonly waiters: Set<() => void>
}

/**
 * The manifest flow: docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest. A page
 * on the listener of logins, which opens once, posts a manifest to GitHub; GitHub shows it to the person and
 * leads back with a code, which is exchanged for the App and its key, once and within the hour.
 */
export class BotCreations {
  readonly #parts: CreationParts
  readonly #entries = new BoundedMap<string, Entry>(maxKept)
  readonly #renderPage = loadBotPage()

  constructor(parts: CreationParts) {
    this.#parts = parts
  }

  /** Throws `bot-exists`, `callback-port-in-use`, `stopping`. */
  async start(request: CreateBot): Promise<BotCreation> {
    const { callback, signal, timeoutMs = usualTimeoutMs } = this.#parts
    if (signal.aborted) throw new DoorwardError('stopping', 'the daemon is stopping')
    const name = request.name ?? suggestName(request.org, randomBytes(3).toString('hex'))
    if (await this.#parts.isTaken(toSlug(name)))
      throw new DoorwardError(
        'bot-exists',
        `there is a bot or a login github@${toSlug(name)} here`,
        { hint: 'choose another name: doorward bot create github --name NAME' },
      )
    const target = { redirectHost: host, redirectPath: botCallbackPath } as const
    const lease = await callback.open(target, this.#parts.callbackPort())
    const [id, state, once] = [randomText(), randomText(), randomText()]
    const apiUrl = request.enterprise
      ? `${new URL(request.enterprise).origin}/api/v3`
      : this.#parts.apiUrl()
    const can = request.can ?? 'review'
    const publicUrl = this.#parts.publicUrl()
    const hookUrl = toHookUrl(request, publicUrl, toSlug(name))
    const origin = toGitOrigin(apiUrl)
    const page = `/bot/${once}`
    const expiresAt = Date.now() + timeoutMs
    const settle = (outcome: Entry['outcome']) => this.#settle(id, outcome)
    const timer = setTimeout(() => settle({ status: 'expired', error: tooLate }), timeoutMs).unref()
    const outcome = { status: 'pending' } as const
    const waiters = new Set<() => void>()
    const fixed = { id, state, request, apiUrl, hookUrl, expiresAt, lease, page, timer, waiters }
    const [oldest = ''] = this.#entries.size < maxKept ? [] : this.#entries.keys()
    this.#settle(oldest, { status: 'cancelled' })
    this.#entries.set(id, { ...fixed, isUsed: false, outcome })
    const homepage = request.homepage ?? `${origin}/apps/${toSlug(name)}`
    const manifest = toManifest({
      homepage,
      name,
      can,
      hookUrl,
      redirectUrl: lease.redirectUri,
    })
    const isReachable = request.url !== undefined || publicUrl !== undefined
    const newApp =
      request.org === undefined
        ? 'settings/apps/new'
        : `organizations/${request.org}/settings/apps/new`
    callback.showOnce(
      page,
      this.#renderPage({
        manifest,
        can,
        owner: request.org,
        action: `${origin}/${newApp}?state=${state}`,
        isReachable,
      }),
      renderUsed(),
    )
    const url = `${new URL(lease.redirectUri).origin}${page}`
    return { id, status: 'pending', url, expiresAt: new Date(expiresAt).toISOString() }
  }

  /** The answer of GitHub. Throws for one that belongs to no creation: then nothing has changed. */
  async finish(parameters: URLSearchParams): Promise<Page> {
    const state = parameters.get('state') ?? ''
    const entry = [...this.#entries.values()].find((one) => constantTimeEqual(one.state, state))
    if (!entry || entry.isUsed || entry.outcome.status !== 'pending')
      throw new DoorwardError('callback-invalid', 'no bot is waiting for this answer')
    const [code, ...more] = parameters.getAll('code')
    if (code === undefined || more.length > 0 || !/^[\w-]{1,200}$/.test(code))
      throw new DoorwardError('callback-invalid', 'the answer of GitHub has no code')
    entry.isUsed = true
    try {
      const made = await this.#convert(entry, code)
      const bot = await this.#parts.keep(made)
      this.#settle(entry.id, { status: 'created', bot })
      return madePage(bot)
    } catch (error) {
      const { code, message, hint } = knownError(error)
      const failed = { code, message, ...(hint !== undefined && { hint }) }
      this.#settle(entry.id, { status: 'failed', error: failed })
      return failedPage(message, hint)
    }
  }

  view(id: string): BotCreation {
    const { expiresAt, outcome, lease, page } = this.#get(id)
    const url = `${new URL(lease.redirectUri).origin}${page}`
    const isPending = outcome.status === 'pending'
    const until = new Date(expiresAt).toISOString()
    return { id, expiresAt: until, ...(isPending && { url }), ...outcome }
  }

  /** Resolves when the creation ends, the time is over or the signal is aborted. */
  async waitForEnd(id: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const entry = this.#get(id)
    if (entry.outcome.status !== 'pending' || signal.aborted) return
    await waitToBeCalled(entry.waiters, timeoutMs, signal)
  }

  cancel(id: string): void {
    if (this.#get(id).isUsed) return
    this.#settle(id, { status: 'cancelled' })
  }

  close(): void {
    for (const id of this.#entries.keys()) this.#settle(id, { status: 'cancelled' })
  }

  #get(id: string): Entry {
    const entry = this.#entries.get(id)
    if (entry) return entry
    throw new DoorwardError('bot-not-found', 'no bot is being made under this id', {
      hint: 'doorward bot list',
    })
  }

  #settle(id: string, outcome: Entry['outcome']): void {
    const entry = this.#entries.get(id)
    if (entry?.outcome.status !== 'pending') return
    entry.outcome = outcome
    clearTimeout(entry.timer)
    // A bot that is made now would come back to nobody.
    this.#parts.callback.hide(entry.page)
    entry.lease.release()
    for (const done of entry.waiters) done()
  }

  async #convert(entry: Entry, code: string): Promise<NewBot> {
    const { apiUrl, hookUrl, request } = entry
    const response = await requestWithToken(
      apiUrl,
      `/app-manifests/${code}/conversions`,
      undefined,
      {
        method: 'POST',
        signal: this.#parts.signal,
        handles: [404, 422],
      },
    )
    if (response.status >= 300)
      throw new DoorwardError(
        'bot-refused',
        'GitHub does not know this code: it was used before, or is older than an hour',
        {
          hint: 'look whether the App is there, delete it, and make it again: doorward bot create github',
        },
      )
    return toNewBot(response.json, { apiUrl, hookUrl, can: request.can ?? 'review' })
  }
}

type Known = Pick<BotRecord, 'apiUrl' | 'hookUrl' | 'can'>

const toNewBot = (json: unknown, known: Known): NewBot => {
  const origin = toGitOrigin(known.apiUrl)
  const text = (...path: string[]): string => {
    const value = textAt(json, ...path)
    if (value !== undefined && value !== '' && value.length <= 16_384) return value
    throw new DoorwardError('bot-refused', `GitHub's answer has no ${path.join('.')}`, {
      hint: 'look whether the App is there, delete it, and make it again: doorward bot create github',
    })
  }
  const slug = text('slug')
  const pageUrl = text('html_url')
  const privateKey = text('pem')
  const appId = Number(textAt(json, 'id') ?? (json as { readonly id?: unknown }).id)
  parsePrivateKey(privateKey)
  if (!botSlugForm.test(slug) || !Number.isSafeInteger(appId))
    throw new DoorwardError('bot-refused', "GitHub's answer names no App", {
      hint: 'doorward bot create github',
    })
  if (!isSafeToOpen(pageUrl) || new URL(pageUrl).origin !== origin)
    throw new DoorwardError(
      'bot-refused',
      `GitHub's answer names a page that is not at ${origin}`,
      {
        hint: 'check providers.github.api_url in gateway.yaml',
      },
    )
  const owner = text('owner', 'login')
  const settings =
    textAt(json, 'owner', 'type') === 'Organization'
      ? `organizations/${encodeURIComponent(owner)}/settings/apps`
      : 'settings/apps'
  const record: BotRecord = {
    kind: 'app',
    version: 1,
    slug,
    name: text('name'),
    appId,
    clientId: text('client_id'),
    clientSecret: text('client_secret'),
    privateKey,
    owner,
    pageUrl,
    settingsUrl: `${origin}/${settings}/${slug}`,
    createdAt: new Date().toISOString(),
    ...known,
  }
  return { record, secret: textAt(json, 'webhook_secret') }
}

const randomText = (): string => randomBytes(32).toString('base64url')

const tooLate = {
  code: 'login-expired',
  message: 'nobody pressed the button in time',
  hint: 'doorward bot create github',
}

const madePage = ({ name, installUrl }: BotSummary): Page => ({
  kind: 'done',
  title: 'Your bot is made',
  account: name,
  message: 'Its key is kept on this machine. Now choose the repositories in which it works.',
  link: { url: installUrl, label: 'Choose repositories' },
  advice: 'Deliveries arrive at',
  command: toBotPath(name),
})

const failedPage = (message: string, hint: string | undefined): Page => ({
  kind: 'failed',
  title: 'The bot was not made',
  message: `${message}.`,
  advice: hint === undefined ? 'To try again:' : `${hint}.`,
  ...(hint === undefined && { command: 'doorward bot create github' }),
})
