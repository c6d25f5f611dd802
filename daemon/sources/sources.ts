import type { SourceSummary, StatusProblem } from '../../shared/api/api.ts'
import { splitPlace } from '../../shared/approve/approve.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import { type Feed, hasToken, type TokenFeed } from '../../shared/sources/feed.ts'
import type { CommandFeed, FilesFeed } from '../../shared/sources/local-feed.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import type { OwnMessages } from '../delivery/loop-guard.ts'
import type { RunProcess } from '../agents/orphans.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import type { ChatApprovals } from '../webhook/approvals/chat.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { Engine } from '../webhook/engine.ts'
import { getSlackApi, SlackChat } from './slack/chat.ts'
import { loadWebSocket } from './slack/connect.ts'
import { SlackSource } from './slack/slack-source.ts'
import { CommandSource } from './command/command-source.ts'
import { FilesSource } from './files/files-source.ts'
import type { Source, SourceServices } from './source.ts'
import { countUnrun } from './unrun.ts'
import { getAnswerBot, getTelegramApi, TelegramChat } from './telegram/chat.ts'
import { Offsets } from './telegram/offsets.ts'
import { TelegramSource } from './telegram/telegram-source.ts'

/*
 * All sources of the configuration. Webhooks with the same token share one: Slack gives each event to only one socket
 * of an app, and Telegram lets only one program read.
 */

type Services = Pick<SourceServices, 'accept' | 'isServing'> & {
  readonly current: () => Pick<Engine, 'config' | 'env' | 'byPath'>
  readonly access: Tokens['access']
  readonly messages: OwnMessages
  readonly events: EventStore
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly run: RunProcess
  readonly homeFolder: string
  /** The file of the numbers of Telegram. */
  readonly offsetsFile: string
  readonly approvals?: ChatApprovals
  readonly now?: () => number
}

/** A source that is wanted: a program or files of one webhook, or the value of a variable. */
type Wanted = TokenWanted | { readonly path: string; readonly feed: CommandFeed | FilesFeed }

type TokenWanted = {
  readonly kind: TokenFeed['kind']
  readonly name: string
  readonly token: string
  readonly apiUrl: string
}

type Running = { readonly wanted: Wanted; readonly source: Source }

export class Sources {
  readonly #services: Services
  readonly #now: () => number
  readonly #running = new Map<string, Running>()
  readonly #control = new AbortController()
  readonly #chatControl = new AbortController()
  readonly #offsets: Offsets
  readonly #slack: SlackChat
  readonly #telegram: TelegramChat
  #disconnectSlack: (() => void) | undefined
  #disconnectTelegram: (() => void) | undefined
  #isStarted = false

  constructor(services: Services) {
    const { current, access, messages, approvals = noApprovals, now = Date.now } = services
    const { signal } = this.#chatControl
    this.#services = services
    this.#now = now
    this.#offsets = new Offsets(services.offsetsFile)
    const gateway = () => current().config.gateway
    const env = () => current().env
    this.#slack = new SlackChat({ gateway, env, access, messages, approvals, signal })
    this.#telegram = new TelegramChat({ gateway, env, approvals, signal })
  }

  start(): void {
    this.#isStarted = true
    this.configure()
  }

  /** Starts what the configuration wants now, and stops the rest. A source that has failed begins again. */
  configure(): void {
    if (!this.#isStarted || this.#control.signal.aborted) return
    const wanted = this.#listWanted()
    for (const [key, { source }] of this.#running)
      if (!wanted.has(key) || source.status().state === 'failed') {
        this.#running.delete(key)
        void source.stop()
      }
    for (const [key, one] of wanted)
      if (!this.#running.has(key)) {
        const source = this.#create(one)
        this.#running.set(key, { wanted: one, source })
        source.start()
      }
    this.#connectChats()
  }

  /** Takes no more events; another process may take over, or the daemon stops. */
  async stop(): Promise<void> {
    this.#control.abort()
    await Promise.all([...this.#running.values()].map(async ({ source }) => source.stop()))
  }

  /** Asks nothing more in chats, and changes no message there. */
  leaveChats(): void {
    this.#chatControl.abort()
    this.#disconnectSlack?.()
    this.#disconnectTelegram?.()
  }

  list(): SourceSummary[] {
    return [...this.#running.values()].map(({ wanted, source }) => ({
      kind: kindOf(wanted),
      webhooks: this.#webhooksOf(wanted).map(({ path }) => path),
      ...source.status(),
    }))
  }

  problems(): StatusProblem[] {
    return this.list().flatMap(({ problem, webhooks: [webhook] }) =>
      problem ? [{ ...problem, ...(webhook !== undefined && { about: { webhook } }) }] : [],
    )
  }

  #listWanted(): Map<string, Wanted> {
    const { config, env } = this.#services.current()
    const found = this.#webhooks().flatMap(({ path, feed }): Wanted[] =>
      hasToken(feed) ? [this.#toWanted(feed, env) ?? []].flat() : [{ path, feed }],
    )
    const bot = getAnswerBot(config.gateway, env)
    // Somebody has to hear the buttons, also those of a daemon that was killed.
    if (bot && this.#asksInTelegram())
      found.push({ kind: 'telegram', apiUrl: getTelegramApi(config.gateway), ...bot })
    return new Map(
      found.map((one) => [
        'feed' in one ? JSON.stringify(one) : [one.kind, one.apiUrl, one.token].join(' '),
        one,
      ]),
    )
  }

  #asksInTelegram(): boolean {
    const { current, events } = this.#services
    const rules = [...current().byPath.values()].flatMap((webhook) => webhook.rules)
    const places = [
      ...rules.flatMap(({ leaving }) => (leaving?.approve?.who.telegram ? leaving.approve.by : [])),
      // The rule may have been changed while its answer waits.
      ...events
        .list({ limit: Infinity, state: 'waiting' })
        .flatMap((one) => one.approval?.asked ?? []),
    ]
    return places.some((place) => splitPlace(place)[0] === 'telegram')
  }

  #toWanted({ kind, tokenEnv: name }: TokenFeed, env: NodeJS.ProcessEnv): TokenWanted | undefined {
    const { gateway } = this.#services.current().config
    const [token] = listSecrets([name], env)
    const apiUrl = kind === 'slack' ? getSlackApi(gateway) : getTelegramApi(gateway)
    return token === undefined ? undefined : { kind, name, token: token.trim(), apiUrl }
  }

  #webhooks(): (CompiledWebhook & { readonly feed: Feed })[] {
    return [...new Set(this.#services.current().byPath.values())].filter(
      (webhook): webhook is CompiledWebhook & { readonly feed: Feed } => webhook.feed !== undefined,
    )
  }

  #webhooksOf(wanted: Wanted): CompiledWebhook[] {
    if ('feed' in wanted) return this.#webhooks().filter(({ path }) => path === wanted.path)
    const { env } = this.#services.current()
    const { kind, token } = wanted
    return this.#webhooks().filter(
      ({ feed }) =>
        hasToken(feed) && feed.kind === kind && this.#toWanted(feed, env)?.token === token,
    )
  }

  #create(wanted: Wanted): Source {
    const { accept, isServing } = this.#services
    const own = {
      webhooks: () => this.#webhooksOf(wanted),
      accept,
      isServing: () => isServing() && !this.#control.signal.aborted,
      tell: (fault: DoorwardError) => this.#tell(wanted, fault),
      now: this.#now,
    }
    if ('feed' in wanted) return this.#createLocal(wanted, own)
    const { name, token, apiUrl } = wanted
    const parts = { ...own, apiUrl, token: { token, name } }
    if (wanted.kind === 'telegram')
      return new TelegramSource({
        ...parts,
        offsets: this.#offsets,
        pressed: async (press) => this.#telegram.pressed(press, { token, name }),
      })
    // Now: an update may replace the files of a daemon that runs.
    void loadWebSocket()
    return new SlackSource({ ...parts, pressed: this.#slack.pressed })
  }

  #createLocal(
    { path, feed }: Exclude<Wanted, TokenWanted>,
    own: Omit<SourceServices, 'unrun'>,
  ): Source {
    const { events, run, homeFolder, current } = this.#services
    const unrun = countUnrun(events, path)
    return feed.kind === 'files'
      ? new FilesSource({ ...own, feed, homeFolder, unrun })
      : new CommandSource({ ...own, feed, run, homeFolder, env: () => current().env, unrun })
  }

  /** A question has buttons only where somebody hears them. */
  #connectChats(): void {
    const { approvals = noApprovals, current } = this.#services
    const kinds = [...this.#running.values()].map(({ wanted }) => kindOf(wanted))
    if (kinds.includes('slack')) this.#disconnectSlack ??= approvals.connect(this.#slack)
    else {
      this.#disconnectSlack?.()
      this.#disconnectSlack = undefined
    }
    const { config, env } = current()
    if (getAnswerBot(config.gateway, env))
      this.#disconnectTelegram ??= approvals.connect(this.#telegram)
    else {
      this.#disconnectTelegram?.()
      this.#disconnectTelegram = undefined
    }
  }

  #tell(wanted: Wanted, { code, message, hint }: DoorwardError): void {
    const { events, log } = this.#services
    log.warn({ code, source: kindOf(wanted) }, message)
    events.add(new Date(this.#now()), {
      kind: 'daemon',
      state: 'failed',
      code,
      detail: hint === undefined ? message : `${message}: ${hint}`,
    })
  }
}

const kindOf = (wanted: Wanted): Feed['kind'] => ('feed' in wanted ? wanted.feed : wanted).kind

const noApprovals: ChatApprovals = {
  connect: () => () => undefined,
  press: async () => 'Nothing waits here any more.',
}
