import { type Check, checksFor } from '../../shared/api/checks.ts'
import {
  type ConnectedHook,
  type ConnectHook,
  describeHookProblem,
  type HookSummary,
  type PingedHook,
  type RemovedHook,
} from '../../shared/api/hooks.ts'
import type { EventRecord } from '../../shared/api/api.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import type { HookProvider, WebhookSource } from '../../shared/config/source.ts'
import { getPublicPath, type Webhook } from '../../shared/config/webhook.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { formatDuration, toPlainLine } from '../../shared/text.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Home } from '../../shared/home/home.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { readIdentity } from '../util/identity.ts'
import type { Engine } from '../webhook/engine.ts'
import { createGithubHooks } from './github-hooks.ts'
import { createGitlabHooks } from './gitlab-hooks.ts'
import type { PastDelivery, PastApi, SenderHook, SenderApi } from './sender-api.ts'
import { createStripePast } from './stripe-past.ts'
import { withDeadline } from '../../shared/deadline.ts'

/** For a hook whose deliveries are only read: no name in .invalid ever leads anywhere (RFC 6761). */
const nowhere = 'doorward.invalid'
/** How long a ping may take from its sender to here. */
const pingMs = 15_000

export type HookParts = {
  readonly home: Home
  readonly current: () => Pick<Engine, 'config' | 'env'>
  readonly access: Tokens['access']
  readonly events: EventStore
  readonly pingMs?: number
}

/** The API of a sender, with the login or token of its target. */
export const openSenderApi = (
  provider: HookProvider,
  { config, env }: Pick<Engine, 'config' | 'env'>,
  access: Tokens['access'],
): SenderApi => {
  const { token_env: tokenEnv, login, api_url: apiUrl } = config.gateway.targets[provider]
  return createSenderApi[provider](apiUrl, {
    target: provider,
    tokenEnv,
    provider: login ?? provider,
    env,
    access,
  })
}

type PastServices = Pick<Tokens, 'access'> & {
  readonly bots: { readonly past: (name: string) => PastApi }
}

/** The deliveries that a sender keeps of a webhook. */
export const openPast = (
  source: WebhookSource,
  engine: Pick<Engine, 'config' | 'env'>,
  { access, bots }: PastServices,
): PastApi => {
  const { provider, keyEnv: tokenEnv, app } = source
  if (app !== undefined) return bots.past(app)
  if (provider !== 'stripe') return openSenderApi(provider, engine, access)
  const token = { target: 'Stripe', tokenEnv, provider: undefined, env: engine.env, access }
  return createStripePast(source, token)
}

/**
 * The hooks at the senders that deliver to our webhooks. Only hooks that an entry names in `source` are
 * changed or deleted. Throws `source-failed`, `scope-missing`, `hook-foreign`, `webhook-not-found`,
 * `config-invalid` and why there is no token.
 */
export class Hooks {
  readonly #parts: HookParts
  /** Hook numbers that may not be in their entries yet: the client may have left. */
  readonly #made = new Map<string, number>()

  constructor(parts: HookParts) {
    this.#parts = parts
  }

  /** Makes the hook of a webhook, or sets the one that it has. `check` changes nothing. */
  async connect(
    { path, provider, repository, check, poll }: ConnectHook,
    signal: AbortSignal,
  ): Promise<ConnectedHook> {
    const sender = this.#senderOf(provider)
    const url = poll ? await this.#placeholderOf(path) : this.#publicUrlOf(path)
    const webhook = this.#find(path)
    const own = webhook?.source
    if (own && !isSame(own, { provider, repository }))
      throw new DoorwardError('hook-foreign', `${path} is connected to ${own.repository}`, {
        hint: `doorward webhook disconnect ${path}, or another path: --path`,
      })
    const hooks = await sender.listHooks(repository, signal)
    const key = [path, provider, repository.toLowerCase()].join(' ')
    const ownId = own?.hookId ?? this.#made.get(key)
    const hook = hooks.find(({ id }) => id === ownId)
    if (!hook) refuseForeign(hooks, url, sender, repository)
    if (check) return hook ? { state: 'exists', hookId: hook.id, url } : { state: 'missing', url }
    if (!webhook) throw notFound(path)
    const settings = { url, secret: this.#secretOf(webhook, provider), events: eventsOf(webhook) }
    const hookId = await sender.saveHook({ repository, hookId: hook?.id }, settings, signal)
    this.#made.set(key, hookId)
    return { state: hook ? 'updated' : 'created', hookId, url, events: settings.events }
  }

  /** Has the sender ping a webhook, and waits for what comes. */
  async ping(path: string, signal: AbortSignal): Promise<PingedHook> {
    const { own, sender } = this.#connected(path)
    const control = new AbortController()
    const arrival = this.#nextEvent(path, AbortSignal.any([signal, control.signal]))
    try {
      await sender.pingHook(own, signal)
      const event = await withDeadline(this.#parts.pingMs ?? pingMs, arrival, () => undefined)
      if (event) return { arrived: true, event }
    } finally {
      control.abort()
    }
    // Senders list a delivery some time after it was sent.
    const last = await sender.lastDelivery(own, signal).catch(() => undefined)
    return { arrived: false, ...(last && !last.isOk && { answer: last.answer }) }
  }

  async disconnect(path: string, signal: AbortSignal): Promise<RemovedHook> {
    const { own, sender } = this.#connected(path)
    return { removed: await sender.deleteHook(own, signal), ...own }
  }

  /** Each connected webhook, with its hook as the sender has it now. */
  async list(signal: AbortSignal): Promise<HookSummary[]> {
    const { webhooks } = this.#parts.current().config
    return Promise.all(
      webhooks.flatMap(({ path, source }) =>
        source && isHook(source) ? [this.#describe(path, source, signal)] : [],
      ),
    )
  }

  /** Compares what each sender last delivered, and got as an answer, with what came here. */
  async check(startedAt: Date, signal: AbortSignal): Promise<Check[]> {
    return (await this.list(signal)).map((hook) => checkHook(hook, startedAt.getTime()))
  }

  async #describe(path: string, own: HookSource, signal: AbortSignal): Promise<HookSummary> {
    const summary = { path, ...own, events: [] }
    try {
      const sender = this.#senderOf(own.provider)
      const hooks = await sender.listHooks(own.repository, signal)
      const hook = hooks.find(({ id }) => id === own.hookId)
      if (!hook) return { ...summary, state: 'missing' }
      const last = await sender.lastDelivery(own, signal)
      return {
        ...summary,
        state: !hook.isActive ? 'off' : this.#isHere(hook, path, own) ? 'active' : 'moved',
        url: hook.url,
        events: [...hook.events],
        ...(last && { last: this.#toLast(last, path) }),
      }
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      const { message, hint } = error
      return { ...summary, state: 'unknown', problem: message, ...(hint !== undefined && { hint }) }
    }
  }

  #toLast(
    { at, event, isOk, answer, deliveryId }: PastDelivery,
    path: string,
  ): NonNullable<HookSummary['last']> {
    const records = this.#parts.events.list({ limit: Number.MAX_SAFE_INTEGER, webhook: path })
    const here = records.some((record) => record.deliveryId === deliveryId)
    return { at, event, ok: isOk, answer, here }
  }

  #isHere(hook: SenderHook, path: string, { mode }: WebhookSource): boolean {
    const { server } = this.#parts.current().config.gateway
    // Earlier versions made one for all machines.
    if (mode === 'poll') return new RegExp(`^https://([0-9a-f]+\\.)?${nowhere}/`).test(hook.url)
    const { public_url: publicUrl } = server
    return publicUrl === undefined || isSameUrl(hook.url, toUrl(publicUrl, path))
  }

  /** The next new event of a webhook; undefined when none came before the signal. */
  async #nextEvent(path: string, signal: AbortSignal): Promise<EventRecord | undefined> {
    let unfollow = () => {}
    const event = new Promise<EventRecord | undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
      unfollow = this.#parts.events.follow(({ record, before }) => {
        if (before === undefined && record.webhook === path) resolve(record)
      })
    })
    return event.finally(unfollow)
  }

  #connected(path: string): { readonly own: HookSource; readonly sender: SenderApi } {
    const webhook = this.#find(path)
    if (!webhook) throw notFound(path)
    const own = webhook.source
    if (!own || !isHook(own))
      throw new DoorwardError('webhook-not-found', `${path} is not connected`, {
        hint: `doorward webhook connect ${webhook.scheme.name === 'gitlab' ? 'gitlab' : 'github'} OWNER/REPOSITORY --path ${path}`,
      })
    return { own, sender: this.#senderOf(own.provider) }
  }

  #find(path: string): Webhook | undefined {
    return this.#parts.current().config.webhooks.find((webhook) => webhook.path === path)
  }

  #senderOf(provider: HookProvider): SenderApi {
    return openSenderApi(provider, this.#parts.current(), this.#parts.access)
  }

  /** Another one in each home, as GitHub makes no second hook for one address. */
  async #placeholderOf(path: string): Promise<string> {
    const { id } = await readIdentity(this.#parts.home)
    return toUrl(`https://${id}.${nowhere}`, path)
  }

  #publicUrlOf(path: string): string {
    const { public_url: publicUrl } = this.#parts.current().config.gateway.server
    if (publicUrl !== undefined) return toUrl(publicUrl, path)
    throw new DoorwardError('config-invalid', 'server.public_url in gateway.yaml is not set', {
      hint: 'doorward tunnel opens a way in and sets it; --poll (GitHub) needs none',
    })
  }

  #secretOf({ path, scheme, secretNames, enabled }: Webhook, provider: HookProvider): string {
    if (scheme.name !== provider)
      throw new DoorwardError('config-invalid', `${path} is not for ${provider}`, {
        hint: `write signature_scheme: ${provider}, or choose another path: --path`,
      })
    if (!enabled)
      throw new DoorwardError('config-invalid', `${path} is switched off`, {
        hint: 'remove enabled: false: doorward config edit webhooks',
      })
    const [secret] = listSecrets(secretNames, this.#parts.current().env)
    if (secret !== undefined) return secret
    throw new DoorwardError('config-invalid', `${path} has no secret`, {
      hint:
        secretNames.length === 0
          ? 'name a variable in secret_env: doorward config edit webhooks'
          : `set ${secretNames.join(' or ')} in .env: doorward config edit env`,
    })
  }
}

type HookSource = WebhookSource & { readonly provider: HookProvider }

/** Stripe's hooks are not managed; only its events are read. The hook of a bot is managed with the bot. */
const isHook = (source: WebhookSource): source is HookSource =>
  source.provider !== 'stripe' && source.app === undefined

const createSenderApi = { github: createGithubHooks, gitlab: createGitlabHooks }

/** The events that can run a rule; all, where a rule does not say. */
const eventsOf = ({ rules }: Webhook): string[] => {
  const names = rules.flatMap(({ on, coalesce }) =>
    on ? [...on, ...(coalesce?.cancelOn ?? [])].map((name) => name.split('.', 1)[0] ?? '*') : '*',
  )
  return names.some((name) => name.includes('*')) ? ['*'] : [...new Set(names)]
}

/** A hook that an entry does not name was made by a person or by another machine. */
const refuseForeign = (
  hooks: readonly SenderHook[],
  url: string,
  { title }: SenderApi,
  repository: string,
): void => {
  const foreign = hooks.find((hook) => isSameUrl(hook.url, url))
  if (!foreign) return
  throw new DoorwardError(
    'hook-foreign',
    `${repository} has a hook for this address that doorward did not make (${foreign.id})`,
    {
      hint: `delete it at ${title} (Settings, Webhooks), also if a connect that was cut off left it, and run this again; or use another path: --path`,
    },
  )
}

const isSame = (
  own: WebhookSource,
  { provider, repository }: Pick<WebhookSource, 'provider' | 'repository'>,
): boolean => own.provider === provider && own.repository.toLowerCase() === repository.toLowerCase()

const toUrl = (publicUrl: string, path: string): string =>
  `${publicUrl.replace(/\/+$/, '')}${getPublicPath(path)}`

const isSameUrl = (one: string, other: string): boolean =>
  URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href

const notFound = (path: string) =>
  new DoorwardError('webhook-not-found', `no webhook is defined at ${path}`, {
    hint: 'doorward webhook list',
  })

const { ok, warning, skipped } = checksFor('tunnel')

const checkHook = (hook: HookSummary, startedAtMs: number): Check => {
  const { provider, repository, path, state, last } = hook
  const name = `hook of ${toPlainLine(repository)}`
  const problem = describeHookProblem(hook)
  if (problem !== undefined)
    return (state === 'unknown' ? skipped : warning)(name, toPlainLine(problem))
  if (hook.mode === 'poll') return ok(name, `its deliveries are read from ${provider}`)
  if (!last) return ok(name, `${provider} has delivered nothing yet`)
  const at = Date.parse(last.at)
  const age = formatDuration(Math.max(0, Date.now() - at))
  const delivery = toPlainLine(`${last.event}, ${age} ago, to ${path}`)
  const answer = toPlainLine(last.answer)
  if (!last.ok)
    return warning(
      name,
      `${provider} could not deliver ${delivery}: ${answer}`,
      last.here
        ? `doorward events --webhook ${path}`
        : 'open the tunnel; then: doorward events missed',
    )
  if (last.here) return ok(name, `${delivery}: answered ${answer}, and came here`)
  // Events are in memory only.
  if (at < startedAtMs)
    return ok(name, `${delivery}, before the daemon started: answered ${answer}`)
  return warning(
    name,
    `${provider} delivered ${delivery}, and got ${answer}, but nothing came here`,
    'what else answers at server.public_url? point the tunnel at this daemon',
  )
}
