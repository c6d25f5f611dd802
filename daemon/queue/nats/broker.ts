import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { parseQueueServers } from '../../../shared/config/queue.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Log } from '../../log/log.ts'
import type { Memory } from '../../state.ts'
import { withDeadline } from '../../../shared/deadline.ts'

/*
 * The connection to NATS, and the streams there. They are in memory, and gone when their server is
 * restarted: they are made again at each connection.
 */

export type QueueSettings = Gateway['queue']

type BrokerParts = {
  readonly settings: () => QueueSettings
  readonly env: () => NodeJS.ProcessEnv
  readonly keys: () => readonly Buffer[]
  readonly runs: Memory['runs']
  readonly log: Log
}

/** A connection whose streams are there. */
export type Link = {
  readonly nc: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
}

export const runsStream = 'doorward-runs'
/** Events that wait for a newer one with their key: no worker may take them yet. */
export const heldStream = 'doorward-held'
export const answersStream = 'doorward-answers'
export const runSubject = 'doorward.run'
export const heldSubject = 'doorward.held'
export const doneSubject = 'doorward.done'
export const progressSubject = 'doorward.progress'
export const cancelSubject = 'doorward.cancel'
export const machinesSubject = 'doorward.machines'
/** Where a worker asks that has an account of its own at the broker, which has no streams. */
const importedApi = 'doorward.js'
/** What the broker says when a machine ends a run for good. */
export const terminatedSubject = `$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.${runsStream}.*`

/** A name may have dots, which separate the parts of a subject, and are no part of the name of a consumer. */
export const toConsumerName = (agentName: string): string => agentName.replaceAll('.', '=')

export const toRunSubject = (agentName: string): string =>
  `${runSubject}.${toConsumerName(agentName)}`

const nanos = (ms: number): number => ms * 1_000_000
const dayMs = 86_400_000
const duplicateWindowMs = 600_000
/** How long a sender waits for the broker at most. */
const publishLimitMs = 2000
const retryMs = 2000
const fullCode = 10_077

export class Broker {
  readonly #parts: BrokerParts
  readonly #closing = new AbortController()
  readonly #listeners: ((link: Link, isNew: boolean) => void)[] = []
  #connection: NatsConnection | undefined
  #link: Link | undefined
  #running: Promise<void> | undefined
  #isPreparing = false
  #problem: string | undefined

  /** Resolves when the first attempt to connect has ended. */
  readonly #tried: Promise<void>
  #endTry = (): void => undefined

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#tried = new Promise((resolve) => (this.#endTry = resolve))
  }

  get link(): Link | undefined {
    return this.#link
  }

  /** Host and port; undefined without a connection. */
  get server(): string | undefined {
    return this.#link?.nc.getServer()
  }

  /** When the stream of runs was made. */
  get madeAt(): string | undefined {
    return this.#parts.runs.madeAt
  }

  get lostAfterMs(): number {
    return this.#parts.settings().lost_after
  }

  /** The version of its program. */
  get version(): string | undefined {
    return this.#link?.nc.info?.version
  }

  /** Why there is no connection; undefined before the first attempt has ended, too. */
  get problem(): string | undefined {
    return this.#link ? undefined : this.#problem
  }

  /** Calls back at each connection; `isNew` when what waited before is gone. */
  onLink(listener: (link: Link, isNew: boolean) => void): void {
    this.#listeners.push(listener)
  }

  /** Connects in the background, again and again. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Waits for the first connection, as deliveries may come before it. Throws `unavailable`. */
  async untilReady(): Promise<void> {
    if (this.#link) return
    await withDeadline(publishLimitMs, this.#tried, () => undefined)
    if (!this.#link) throw unavailable(this.problem ?? 'not connected yet')
  }

  /**
   * Resolves with the acknowledgement: its sequence, and whether it was there before. Throws `queue-full`,
   * `body-too-large` or `unavailable`.
   */
  async publish(
    subject: string,
    data: Uint8Array,
    msgID: string,
  ): Promise<{ readonly seq: number; readonly duplicate: boolean }> {
    const link = this.#link
    if (!link) throw unavailable(this.problem ?? 'not connected yet')
    const limit = link.nc.info?.max_payload ?? Infinity
    if (data.length + 1024 > limit)
      throw new DoorwardError('body-too-large', 'the prompt made of this payload is too long', {
        localDetail: `NATS takes messages of ${limit} bytes: raise max_payload there`,
      })
    try {
      return await link.js.publish(subject, data, { msgID, timeout: publishLimitMs })
    } catch (error) {
      if (getCode(error) === fullCode)
        throw new DoorwardError('queue-full', 'the queue is full', {
          localDetail: `the stream of NATS is full: ${subject.startsWith(runSubject) ? 'queue.max_events or queue.max_bytes' : 'answers wait for their receiver'}`,
        })
      // The stream may be gone, with the connection still there.
      if (errorName(error) === 'JetStreamNotEnabled' && !this.#isPreparing)
        void this.#prepare(link.nc)
      throw unavailable(`NATS has not confirmed it (${errorName(error)})`)
    }
  }

  /** After a change of the configuration. */
  applyLimits(): void {
    if (this.#link) void this.#ensureStreams(this.#link.jsm).catch(() => undefined)
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#link = undefined
    if (!this.#connection) return
    // What was written in this turn is sent first: the client would fail over it.
    await new Promise((resolve) => void setImmediate(resolve))
    await this.#connection.close().catch(() => undefined)
    await this.#running
  }

  async #run(): Promise<void> {
    const { log } = this.#parts
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        const { connect } = await import('@nats-io/transport-node')
        this.#connection = await connect(await this.#options())
        // It was closed meanwhile.
        if (signal.aborted) await this.#connection.close()
        else await this.#follow(this.#connection)
      } catch (error) {
        const problem = describeProblem(error)
        if (problem !== this.#problem && !signal.aborted)
          log.warn({ problem }, 'no connection to NATS')
        this.#problem = problem
        this.#endTry()
      }
      this.#link = undefined
      await sleep(retryMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Returns when the connection is closed for good. */
  async #follow(nc: NatsConnection): Promise<void> {
    // Asked for first: after a close it would never end.
    const changes = nc.status()
    await this.#prepare(nc)
    for await (const { type } of changes) {
      if (type === 'disconnect') {
        this.#link = undefined
        this.#problem = 'the connection to NATS was lost'
        this.#parts.log.warn('the connection to NATS was lost')
      }
      if (type === 'reconnect') await this.#prepare(nc)
    }
    this.#link = undefined
  }

  /** Makes what is missing at the broker, until that works. */
  async #prepare(nc: NatsConnection): Promise<void> {
    this.#isPreparing = true
    await this.#makeStreams(nc).finally(() => (this.#isPreparing = false))
  }

  async #makeStreams(nc: NatsConnection): Promise<void> {
    const { log } = this.#parts
    const { signal } = this.#closing
    while (!signal.aborted && !nc.isClosed()) {
      try {
        const { js, jsm, madeAt } = await this.#openStreams(nc)
        const { runs } = this.#parts
        const isNew = runs.madeAt !== undefined && runs.madeAt !== madeAt
        runs.madeAt = madeAt
        this.#problem = undefined
        this.#link = { nc, js, jsm }
        log.info({ server: nc.getServer(), isNew }, 'connected to NATS')
        for (const listener of this.#listeners) listener(this.#link, isNew)
        this.#endTry()
        return
      } catch (error) {
        const problem = describeProblem(error)
        if (problem !== this.#problem) log.warn({ problem }, 'the streams of NATS cannot be used')
        this.#problem = problem
        this.#endTry()
        await sleep(retryMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** With when the stream of runs was made. */
  async #openStreams(nc: NatsConnection) {
    const { jetstream, jetstreamManager } = await import('@nats-io/jetstream')
    const open = async (options: { readonly apiPrefix?: string }) => {
      // Workers may not ask about the account.
      const jsm = await jetstreamManager(nc, { ...options, checkAPI: false })
      return { jsm, js: jetstream(nc, options), madeAt: await this.#ensureStreams(jsm) }
    }
    return open({}).catch(async (error: unknown) => {
      const isWorker = this.#parts.settings().role === 'worker'
      if (!isWorker || errorName(error) !== 'JetStreamNotEnabled') throw error
      return open({ apiPrefix: importedApi })
    })
  }

  /** Resolves with when the stream of runs was made. */
  async #ensureStreams(jsm: JetStreamManager): Promise<string> {
    const { max_events: maxEvents, max_bytes: maxBytes, role } = this.#parts.settings()
    const isWorker = role === 'worker'
    const ensure = async (
      name: string,
      subject: string,
      limits = { max_bytes: maxBytes, max_msgs: maxEvents },
    ) => {
      const known = await jsm.streams.info(name).catch((error: unknown) => {
        if (getCode(error) !== 10_059) throw error
        if (isWorker) throw unavailable('the streams are missing: no receiver has connected yet')
        return undefined
      })
      const info =
        known ??
        (await jsm.streams.add({
          name,
          subjects: [`${subject}.*`],
          storage: 'memory',
          retention: 'workqueue',
          discard: 'new',
          max_age: nanos(dayMs),
          duplicate_window: nanos(duplicateWindowMs),
          ...limits,
        }))
      const { storage, retention, discard, max_bytes, max_msgs } = info.config
      if (storage !== 'memory')
        throw unavailable(
          `the stream ${name} of NATS is on a disk: remove it there, and doorward makes it in memory`,
        )
      // It would keep what is done, or drop what waits.
      if (retention !== 'workqueue' || discard !== 'new')
        throw unavailable(
          `the stream ${name} of NATS was not made by doorward: remove it there, and doorward makes it`,
        )
      // The receivers decide how much may wait.
      if (!isWorker && (max_bytes !== limits.max_bytes || max_msgs !== limits.max_msgs))
        await jsm.streams.update(name, { ...info.config, ...limits })
      return info.created
    }
    const [madeAt] = await Promise.all([
      ensure(runsStream, runSubject),
      // A worker may be allowed to know nothing of it.
      ...(isWorker
        ? []
        : [
            ensure(answersStream, doneSubject),
            // Receivers have the same in memory, within these limits; the broker would reserve the bytes.
            ensure(heldStream, heldSubject, { max_bytes: -1, max_msgs: -1 }),
          ]),
    ])
    return madeAt
  }

  async #options(): Promise<NodeConnectionOptions> {
    const { credsAuthenticator, nkeyAuthenticator } = await import('@nats-io/transport-node')
    const env = this.#parts.env()
    const settings = this.#parts.settings()
    const { role, servers_env, key_env, creds_env, nkey_env, token_env, ca_env } = settings
    if (this.#parts.keys().length === 0)
      throw unavailable(`${key_env} does not hold keys of 32 bytes in base64`)
    const read = (name: string | undefined) => (name === undefined ? undefined : env[name]?.trim())
    const servers = parseQueueServers(read(servers_env) ?? '')
    if (!servers) throw unavailable(`${servers_env} does not hold addresses of NATS servers`)
    const [creds, nkey, token, ca] = [creds_env, nkey_env, token_env, ca_env].map(read)
    const bytes = (text: string) => new TextEncoder().encode(text)
    const login = servers.find(({ username }) => username !== '')
    return {
      servers: servers.map(({ host }) => host),
      name: 'doorward',
      // So that the broker can keep what receivers get from workers.
      // The name that the permissions of brokers have.
      inboxPrefix: `_INBOX.${role === 'worker' ? 'worker' : 'door'}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 500,
      timeout: 5000,
      // A machine that sleeps is found out sooner than after the usual four minutes.
      pingInterval: Math.min(20_000, this.lostAfterMs),
      ...(login && {
        user: decodeURIComponent(login.username),
        pass: decodeURIComponent(login.password),
      }),
      ...(token && { token }),
      ...(nkey && { authenticator: nkeyAuthenticator(bytes(nkey)) }),
      ...(creds && { authenticator: credsAuthenticator(bytes(await readCreds(creds))) }),
      ...((ca || servers.some(({ protocol }) => protocol === 'tls:')) && {
        tls: ca ? { ca: await readText(ca, ca_env) } : {},
      }),
    }
  }
}

const readCreds = async (value: string): Promise<string> =>
  value.includes('-----BEGIN NATS') ? `${value}\n` : readText(value, 'creds_env')

const readText = async (path: string, name: string | undefined): Promise<string> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw unavailable(`the file in ${name} cannot be read (${errorName(error)})`)
  }
}

/** The code with which the broker has refused something. */
export const getCode = (error: unknown): number | undefined => {
  const { code } = error as { readonly code?: unknown }
  return typeof code === 'number' ? code : undefined
}

/**
 * With what the server says, for example that its memory is too small for the streams; never with the message
 * of another library, which may quote credentials.
 */
const describeProblem = (error: unknown): string => {
  if (error instanceof DoorwardError) return error.localDetail ?? error.message
  const name = errorName(error)
  if (getCode(error) !== undefined) return `${name}: ${toPlainLine((error as Error).message)}`
  if (name.startsWith('AuthorizationError')) return 'NATS does not accept the credentials'
  if (name === 'Error') return 'the credentials for NATS cannot be read'
  const cause = error instanceof Error && error.cause ? errorName(error.cause) : name
  return `NATS cannot be used (${cause})`
}

export const unavailable = (localDetail: string): DoorwardError =>
  new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', { localDetail })
