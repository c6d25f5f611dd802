import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { StatusProblem } from '../../shared/api.ts'
import { readEnvironment } from '../../shared/config/environment.ts'
import { type Config, ConfigError, loadConfig, formatProblem } from '../../shared/config/load.ts'
import type { Warning } from '../../shared/config/warning.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import type { Engine } from '../webhook/engine.ts'
import { watchConfig } from './watch.ts'

/*
 * The story of a change: a file is saved -> read all of them again -> good: the new setup takes the
 * place of the old one, at once and whole. Bad: the old one stays, and log, event and status say what
 * is wrong and where, until it is mended.
 */

export type LiveConfig = {
  /** What a delivery that comes now is taken under. */
  readonly current: () => Engine
  /** What is wrong with the files, and what waits for a restart. */
  readonly problems: () => StatusProblem[]
  /** Reads the files now. Throws `config-invalid` with every problem, and keeps what there was. */
  readonly reload: () => Promise<Config>
  /** Follows the files from now on. */
  readonly watch: () => void
  readonly close: () => Promise<void>
}

type LiveConfigParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly setUp: (config: Config, env: NodeJS.ProcessEnv) => Engine
  /** Told after every change, to apply what is not read from `current`. */
  readonly changed: (config: Config) => Promise<void>
  readonly events: EventStore
  readonly log: Log
}

/** What was read from a home, and the texts it was read from. */
export type ReadConfig = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly texts: string
}

/** What a reading came to. */
type Found = ReadConfig | { readonly error: unknown }

/** Reads `.env` and the three files. Throws `home-insecure`, or `ConfigError` with all that is wrong. */
export const readConfig = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
): Promise<ReadConfig> => {
  // Before the files are read in earnest: what changes in between is then seen as a change.
  const texts = await readTexts(home)
  const env = await readEnvironment(home, processEnv)
  return { config: await loadConfig(home, env), env, texts }
}

/** Milliseconds. */
type ConfigTimes = {
  /** How long a file that may be half written has to stay as it is before it is taken. */
  readonly settle: number
  /** How long after a failure it is looked whether the files can be used by now. */
  readonly lookAgain: number
}

const usualTimes: ConfigTimes = { settle: 2000, lookAgain: 10_000 }

/** Begins with what the daemon has started on. */
export const createLiveConfig = (
  { home, processEnv, setUp, changed, events, log }: LiveConfigParts,
  started: ReadConfig,
  times = usualTimes,
): LiveConfig => {
  let setup = setUp(started.config, started.env)
  let broken: DoorwardError | undefined
  let unwatched: string | undefined
  let watch: { readonly close: () => Promise<void> } | undefined
  /** One reading after the other, in the order they were asked for. */
  let last: Promise<unknown> = Promise.resolve()
  let seen = started.texts
  let closed = false
  let settling: AbortController | undefined
  let lookingAgain: NodeJS.Timeout | undefined

  const read = async (): Promise<Config> => {
    seen = await readTexts(home)
    return use(await tryToRead())
  }
  const tryToRead = async (): Promise<Found> =>
    readConfig(home, processEnv).catch((error: unknown) => ({ error }))
  const use = async (found: Found): Promise<Config> => {
    if ('error' in found) throw keepOld(found.error)
    try {
      await take(found.config, found.env)
      return found.config
    } catch (error) {
      throw keepOld(error)
    }
  }
  const take = async (config: Config, env: NodeJS.ProcessEnv) => {
    const old = setup
    setup = setUp(config, env)
    broken = undefined
    await changed(config)
    log.info({ webhooks: config.webhooks.length, agents: config.agents.size }, 'configured')
    const known = new Set(old.warnings.map(({ detail }) => detail))
    for (const { code, detail, hint } of setup.warnings)
      if (!known.has(detail)) log.warn({ code, hint }, detail)
    const left = waitingForRestart(started.config, config).map(({ detail }) => `; ${detail}`)
    const detail = `the configuration was read again: ${summarize(config)}${left.join('')}`
    events.add(new Date(), { kind: 'daemon', state: 'done', detail })
  }
  const keepOld = (error: unknown): DoorwardError => {
    broken = brokenBy(error)
    lookAgain()
    const problems = problemsIn(broken)
    // The places alone: what a person wrote in the wrong one may be a secret.
    const at = error instanceof ConfigError ? error.problems.map(describePosition) : undefined
    log.warn({ code: broken.code, at }, 'the configuration cannot be used, the old one is kept')
    const [first, ...more] = problems
    events.add(new Date(), {
      kind: 'daemon',
      state: 'failed',
      code: broken.code,
      detail: `the configuration cannot be used, the old one is kept: ${first?.detail ?? ''}${more.length > 0 ? ` (and ${more.length} more)` : ''}`,
    })
    return broken
  }
  /**
   * What is wrong need not be in the files: a disk that is away, or too many open files. When that is over
   * no file has changed. Says nothing until they can be used.
   */
  const lookAgain = (): void => {
    clearTimeout(lookingAgain)
    if (closed) return
    lookingAgain = setTimeout(() => void inTurn(readIfUsable), times.lookAgain).unref()
  }
  const readIfUsable = async (): Promise<void> => {
    if (!broken || closed) return
    const texts = await readTexts(home)
    const found = await tryToRead()
    if ('error' in found) lookAgain()
    else await settle(texts, found)
  }
  const inTurn = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    const done = last.then(work, work)
    last = done.catch(() => undefined)
    return done
  }
  const readIfChanged = async (): Promise<void> => {
    // A file that was touched, or saved as it was, is no news.
    const texts = await readTexts(home)
    if (texts !== seen) await settle(texts, await tryToRead())
  }
  /** Takes exactly what was looked at, once it has stayed if it may be half written. */
  const settle = async (texts: string, found: Found): Promise<void> => {
    if (closed) return
    if (!('error' in found) && looksCut(setup.config, found.config)) {
      settling = new AbortController()
      const settled = wait(times.settle, true, { signal: settling.signal }).catch(() => false)
      // Who asks for a reload, or stops the daemon, does not wait for that.
      if (!(await settled)) return
      const now = await readTexts(home)
      if (now !== texts) return settle(now, await tryToRead())
    }
    seen = texts
    await use(found).catch(() => undefined)
  }

  return {
    current: () => setup,
    problems: () => [
      ...(broken ? problemsIn(broken) : []),
      ...waitingForRestart(started.config, setup.config),
      ...(unwatched === undefined ? [] : [notWatched(unwatched)]),
    ],
    reload: async () => {
      if (closed) throw new DoorwardError('stopping', 'the daemon is stopping')
      settling?.abort()
      return inTurn(read)
    },
    watch: () => {
      watch = watchConfig(
        home,
        () => void inTurn(readIfChanged),
        (code) => {
          if (code !== undefined && unwatched === undefined)
            log.warn({ code }, 'cannot watch the configuration')
          unwatched = code
        },
      )
    },
    close: async () => {
      closed = true
      settling?.abort()
      clearTimeout(lookingAgain)
      await watch?.close()
      await last
    },
  }
}

/** All the files as one text; undefined stands for one that cannot be read. */
const readTexts = async (home: Home): Promise<string> => {
  const paths = ['gateway', 'agents', 'webhooks'].map((name) => join(home.config, `${name}.yaml`))
  const texts = await Promise.all(
    [...paths, home.env].map((path) => readFile(path, 'utf8').catch(() => null)),
  )
  return JSON.stringify(texts)
}

const brokenBy = (error: unknown): DoorwardError => {
  if (error instanceof ConfigError) return error
  const known = error instanceof DoorwardError ? error : undefined
  return new DoorwardError('config-invalid', known?.message ?? errorName(error), {
    cause: error,
    hint: known?.hint ?? 'doorward config check',
  })
}

const problemsIn = (error: DoorwardError): StatusProblem[] => {
  const hint = 'the daemon goes on as configured before; doorward config check'
  if (!(error instanceof ConfigError))
    return [{ code: error.code, detail: error.message, hint: error.hint ?? hint }]
  return error.problems.map((problem) => ({
    code: error.code,
    detail: formatProblem(problem),
    hint,
  }))
}

const describePosition = ({ file, line, column, key }: ConfigError['problems'][number]): string =>
  `${file}:${line}:${column}${key === '' ? '' : ` ${key}`}`

const summarize = ({ webhooks, agents }: Config): string =>
  `${webhooks.length} ${webhooks.length === 1 ? 'webhook' : 'webhooks'}, ${agents.size} ${agents.size === 1 ? 'agent' : 'agents'}`

/** What a running daemon is bound to: its addresses. */
const bound = ['host', 'port', 'public_port'] as const

const waitingForRestart = (started: Config, now: Config): Warning[] =>
  bound.flatMap((key) => {
    const value = now.gateway.server[key]
    if (value === started.gateway.server[key]) return []
    const text = value === undefined ? 'not set any more' : `${value} now`
    return [
      {
        code: 'restart-needed',
        detail: `server.${key} is ${text}, which takes effect with a restart`,
        hint: 'doorward daemon restart',
      },
    ]
  })

const notWatched = (code: string): StatusProblem => ({
  code: 'config-not-watched',
  detail: `changes of the configuration are not noticed: its folder cannot be watched (${code})`,
  hint: 'doorward daemon reload after a change',
})

/**
 * True when a configuration lacks what a file that is only half written would lack: every webhook, or the
 * secret of one that had one. Taken at once, the first would turn senders away with a 404, after which
 * many never come again, and the second would let anybody in.
 */
const looksCut = (old: Config, now: Config): boolean => {
  if (now.webhooks.length === 0) return old.webhooks.length > 0
  const closed = new Set(
    old.webhooks.filter(({ secretNames }) => secretNames.length > 0).map(({ path }) => path),
  )
  return now.webhooks.some(({ path, secretNames }) => secretNames.length === 0 && closed.has(path))
}
