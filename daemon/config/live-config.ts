import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { StatusProblem } from '../../shared/api/api.ts'
import { changedValueWarnings, readEnvironment } from '../../shared/config/environment.ts'
import {
  type Config,
  ConfigError,
  formatInHome,
  loadConfig,
  toHomePath,
} from '../../shared/config/load.ts'
import type { Warning } from '../../shared/config/warning.ts'
import { DoorwardError, errorName, toStatusProblem } from '../../shared/errors.ts'
import { type Home, readSecretFile } from '../../shared/home/home.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import type { Engine } from '../webhook/engine.ts'
import { type ConfigWatch, watchConfig } from './watch.ts'

type LiveConfigServices = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly compile: (
    config: Config,
    env: NodeJS.ProcessEnv,
    envWarnings: ReadConfig['envWarnings'],
  ) => Engine
  /** Called after every change, for limits that are not read from `current`. */
  readonly onChange: (config: Config) => Promise<void>
  readonly events: EventStore
  readonly log: Log
}

/** A configuration, and the text of the files it was read from. */
export type ReadConfig = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  /** Values of `.env` that are not what their lines show. */
  readonly envWarnings: readonly Warning[]
  readonly texts: string
}

type ReadResult = ReadConfig | { readonly error: unknown }

/** Reads `.env` and the three files. Throws `home-insecure`, or `ConfigError` with every problem. */
export const readConfig = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
): Promise<ReadConfig> => {
  // Read first: a change after this line is then noticed as one.
  const texts = await readTexts(home)
  const env = await readEnvironment(home, processEnv)
  const envWarnings = changedValueWarnings((await readSecretFile(home.env)) ?? '')
  return { config: await loadConfig(home, env), env, envWarnings, texts }
}

/** In milliseconds. */
type ConfigTimes = {
  /** How long a file that looks truncated must stay unchanged before it is used. */
  readonly settle: number
  /** How long after a failure the files are read again. */
  readonly retry: number
  /**
   * How long after the start its warnings are logged: to check the certificates of NODE_EXTRA_CA_CERTS may
   * take a tenth of the time of a start, and senders wait for that.
   */
  readonly warn: number
}

const defaultTimes: ConfigTimes = { settle: 2000, retry: 10_000, warn: 1000 }

/**
 * The configuration of a running daemon. When a file is saved, all files are read again. If they are valid,
 * a new engine replaces the old one; otherwise the old one stays, and log, event and status report the
 * problems until they are fixed.
 */
export class LiveConfig {
  readonly #services: LiveConfigServices
  readonly #started: ReadConfig
  readonly #times: ConfigTimes
  #engine: Engine
  #failure: DoorwardError | undefined
  #watchError: string | undefined
  #watch: ConfigWatch | undefined
  /** Readings run one after the other, in the order of their requests. */
  #lastReading: Promise<unknown> = Promise.resolve()
  #texts: string
  #isClosed = false
  #settling: AbortController | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #warnTimer: NodeJS.Timeout | undefined
  /** The details of the warnings that are in the log. */
  #logged: ReadonlySet<string> = new Set()

  constructor(services: LiveConfigServices, started: ReadConfig, times = defaultTimes) {
    this.#services = services
    this.#started = started
    this.#times = times
    this.#texts = started.texts
    this.#engine = services.compile(started.config, started.env, started.envWarnings)
  }

  /** The engine for new deliveries. */
  readonly current = (): Engine => this.#engine

  /** The problems of the files, and the changes that need a restart. */
  problems(): StatusProblem[] {
    return [
      ...(this.#failure ? toStatusProblems(this.#failure) : []),
      ...listRestartNeeded(this.#started.config, this.#engine.config),
      ...(this.#watchError === undefined ? [] : [toWatchProblem(this.#watchError)]),
    ]
  }

  /** Reads the files now. Throws `config-invalid` with every problem, and keeps the old configuration. */
  async reload(): Promise<Config> {
    if (this.#isClosed) throw new DoorwardError('stopping', 'the daemon is stopping')
    this.#settling?.abort()
    return this.#inOrder(async () => {
      this.#texts = await readTexts(this.#services.home)
      return this.#apply(await this.#read())
    })
  }

  /** Reloads on every change of the files from now on, and logs the warnings. */
  watch(): void {
    this.#warnTimer = setTimeout(() => this.#logWarnings(), this.#times.warn).unref()
    this.#watch = watchConfig(
      this.#services.home,
      () => void this.#inOrder(() => this.#readIfChanged()),
      (code) => {
        if (code !== undefined && this.#watchError === undefined)
          this.#services.log.warn({ code }, 'cannot watch the configuration')
        this.#watchError = code
      },
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#settling?.abort()
    clearTimeout(this.#retryTimer)
    clearTimeout(this.#warnTimer)
    // A daemon that runs for a moment says what is wrong too.
    if (this.#warnTimer) this.#logWarnings()
    await this.#watch?.close()
    await this.#lastReading
  }

  async #inOrder<Value>(work: () => Promise<Value>): Promise<Value> {
    const done = this.#lastReading.then(work, work)
    this.#lastReading = done.catch(() => undefined)
    return done
  }

  async #read(): Promise<ReadResult> {
    const { home, processEnv } = this.#services
    return readConfig(home, processEnv).catch((error: unknown) => ({ error }))
  }

  async #readIfChanged(): Promise<void> {
    // A file that was saved without a change is ignored.
    const texts = await readTexts(this.#services.home)
    if (texts !== this.#texts) await this.#settle(texts, await this.#read())
  }

  async #retry(): Promise<void> {
    if (!this.#failure || this.#isClosed) return
    const texts = await readTexts(this.#services.home)
    const result = await this.#read()
    if ('error' in result) this.#retryLater()
    else await this.#settle(texts, result)
  }

  /**
   * The cause of a failure may not be in the files, such as a disk that is not mounted or too many open
   * files, and no file changes when it is over. Silent until the files can be used.
   */
  #retryLater(): void {
    clearTimeout(this.#retryTimer)
    if (this.#isClosed) return
    this.#retryTimer = setTimeout(
      () => void this.#inOrder(() => this.#retry()),
      this.#times.retry,
    ).unref()
  }

  /** Applies what was read. If it looks truncated, waits until the files have stayed unchanged. */
  async #settle(texts: string, result: ReadResult): Promise<void> {
    if (this.#isClosed) return
    if (!('error' in result) && looksTruncated(this.#engine.config, result.config)) {
      this.#settling = new AbortController()
      const { signal } = this.#settling
      // A reload, and a stop of the daemon, abort the wait.
      if (!(await delay(this.#times.settle, true, { signal }).catch(() => false))) return
      const now = await readTexts(this.#services.home)
      if (now !== texts) return this.#settle(now, await this.#read())
    }
    this.#texts = texts
    await this.#apply(result).catch(() => undefined)
  }

  async #apply(result: ReadResult): Promise<Config> {
    if ('error' in result) throw this.#keepOld(result.error)
    try {
      await this.#replace(result)
      return result.config
    } catch (error) {
      throw this.#keepOld(error)
    }
  }

  async #replace({ config, env, envWarnings }: ReadConfig): Promise<void> {
    const { compile, onChange, log, events } = this.#services
    this.#engine = compile(config, env, envWarnings)
    this.#failure = undefined
    await onChange(config)
    log.info({ webhooks: config.webhooks.length, agents: config.agents.size }, 'configured')
    this.#logWarnings()
    const pending = listRestartNeeded(this.#started.config, config)
    const detail = [
      `the configuration was reloaded: ${summarize(config)}`,
      ...pending.map((warning) => warning.detail),
    ].join('; ')
    events.add(new Date(), { kind: 'daemon', state: 'done', code: 'config-reloaded', detail })
  }

  #logWarnings(): void {
    const { warnings } = this.#engine
    for (const { code, detail, hint } of warnings)
      if (!this.#logged.has(detail)) this.#services.log.warn({ code, hint }, detail)
    this.#logged = new Set(warnings.map(({ detail }) => detail))
  }

  /** Reports why the new configuration cannot be used. */
  #keepOld(error: unknown): DoorwardError {
    const { log, events } = this.#services
    const failure = toConfigError(error)
    this.#failure = failure
    this.#retryLater()
    // Only the positions: a misplaced value may be a secret.
    const at = error instanceof ConfigError ? error.problems.map(describePosition) : undefined
    const message = 'the configuration is invalid, the old one stays in use'
    log.warn({ code: failure.code, at }, message)
    const [first, ...more] = toStatusProblems(failure)
    const rest = more.length > 0 ? ` (and ${more.length} more)` : ''
    events.add(new Date(), {
      kind: 'daemon',
      state: 'failed',
      code: failure.code,
      detail: `${message}: ${first?.detail ?? ''}${rest}`,
    })
    return failure
  }
}

/** All the files as one text; null stands for a file that cannot be read. */
const readTexts = async (home: Home): Promise<string> => {
  const paths = ['gateway', 'agents', 'webhooks', 'schedules'].map((name) =>
    join(home.config, `${name}.yaml`),
  )
  const texts = await Promise.all(
    [...paths, home.env].map((path) => readFile(path, 'utf8').catch(() => null)),
  )
  return JSON.stringify(texts)
}

const toConfigError = (error: unknown): DoorwardError => {
  if (error instanceof ConfigError) return error
  const known = error instanceof DoorwardError ? error : undefined
  return new DoorwardError('config-invalid', known?.message ?? errorName(error), {
    cause: error,
    hint: known?.hint ?? 'doorward config check',
  })
}

const toStatusProblems = (error: DoorwardError): StatusProblem[] => {
  const hint = 'the old configuration stays in use; doorward config check'
  if (!(error instanceof ConfigError)) return [toStatusProblem(error, hint)]
  return error.problems.map((problem) => ({
    code: error.code,
    detail: formatInHome(problem),
    hint,
    about: { file: toHomePath(problem) },
  }))
}

const describePosition = ({ file, line, column, key }: ConfigError['problems'][number]): string =>
  `${file}:${line}:${column}${key === '' ? '' : ` ${key}`}`

const summarize = ({ webhooks, agents }: Config): string =>
  `${webhooks.length} ${webhooks.length === 1 ? 'webhook' : 'webhooks'}, ${agents.size} ${agents.size === 1 ? 'agent' : 'agents'}`

/** The settings that a running daemon cannot change. */
const listFixed = ({ gateway: { server, queue } }: Config) => ({
  'server.host': server.host,
  'server.port': server.port,
  'server.public_port': server.public_port,
  'queue.engine': queue.engine,
  ...(queue.engine === 'nats' && { 'queue.role': queue.role }),
})

const listRestartNeeded = (started: Config, current: Config): Warning[] => {
  const before: Readonly<Record<string, unknown>> = listFixed(started)
  return Object.entries(listFixed(current)).flatMap(([key, value]) => {
    if (value === before[key]) return []
    const text = value === undefined ? 'no longer set' : `now ${value}`
    return [
      {
        code: 'restart-needed',
        detail: `${key} is ${text}, which takes effect after a restart`,
        hint: 'doorward daemon restart',
      },
    ]
  })
}

const toWatchProblem = (code: string): StatusProblem => ({
  code: 'config-not-watched',
  detail: `changes of the configuration are not noticed: the folder cannot be watched (${code})`,
  hint: 'after a change, run: doorward daemon reload',
})

/**
 * True when a configuration lacks what a file that is not completely written would lack: all webhooks, or
 * the secret of one. Applied immediately, the first would answer senders 404, after which many never send
 * again, and the second would accept anyone.
 */
const looksTruncated = (old: Config, current: Config): boolean => {
  if (current.webhooks.length === 0) return old.webhooks.length > 0
  const protectedPaths = new Set(
    old.webhooks.filter(({ secretNames }) => secretNames.length > 0).map(({ path }) => path),
  )
  return current.webhooks.some(
    ({ path, secretNames }) => secretNames.length === 0 && protectedPaths.has(path),
  )
}
