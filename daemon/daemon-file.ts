import { stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Gateway } from '../shared/config/schema.ts'
import { errorName, systemCode } from '../shared/errors.ts'
import { writeFileAtomic } from '../shared/home/files.ts'
import type { Home } from '../shared/home/home.ts'
import { handoverVersion, version } from '../shared/version.ts'
import type { Listeners } from './http/server.ts'
import type { Log } from './log/log.ts'

type DaemonFileParts = {
  readonly home: Home
  readonly startedAt: Date
  readonly listeners: Listeners
  readonly server: Gateway['server']
  readonly log: Log
}

/** `run/daemon.json`, by which clients find the running daemon. */
export class DaemonFile {
  readonly #parts: DaemonFileParts
  #server: Gateway['server']
  #written: string | undefined

  constructor(parts: DaemonFileParts) {
    this.#parts = parts
    this.#server = parts.server
  }

  readonly url = (): string => this.#parts.listeners.url()

  /** The address for senders of webhooks, when it is not `url`. */
  readonly publicUrl = (): string | undefined =>
    this.#server.public_url ?? this.#parts.listeners.publicUrl()

  /** Uses another `public_url` from now on. */
  configure(server: Gateway['server']): void {
    this.#server = server
  }

  /** Writes the file if its content has changed. Throws what the file system refuses. */
  async write(): Promise<void> {
    const publicUrl = this.publicUrl()
    const file = {
      pid: process.pid,
      url: this.url(),
      ...(publicUrl === undefined ? {} : { publicUrl }),
      version,
      handover: handoverVersion,
      startedAt: this.#parts.startedAt.toISOString(),
    }
    const text = `${JSON.stringify(file)}\n`
    if (text !== this.#written) await writeFileAtomic(this.#parts.home.daemonJson, text)
    this.#written = text
  }

  /** The same, for a daemon that serves whether that works or not. */
  async tryWrite(): Promise<void> {
    await this.write().catch((error: unknown) => this.#logFailure(error))
  }

  /** Writes it even if this process wrote the same before: another one may have changed it. */
  async recreate(): Promise<void> {
    this.#written = undefined
    await this.write()
  }

  async remove(): Promise<void> {
    this.#written = undefined
    await unlink(this.#parts.home.daemonJson).catch(() => undefined)
  }

  #logFailure(error: unknown): void {
    this.#parts.log.error({ error: errorName(error) }, 'cannot write daemon.json')
  }
}

const homeCheckMs = 30_000

/**
 * Calls back when the home has had no lock twice in a row: it was deleted. A daemon without a home cannot
 * save anything, keeps the port of the next one, and is found by no command. Keeps no process alive.
 */
export const watchHomeRemoved = ({ run }: Home, onRemoved: () => void): void => {
  let wasMissing = false
  const check = async (): Promise<void> => {
    const isMissing = await stat(join(run, 'daemon.lock')).then(
      () => false,
      // A disk that does not answer is another matter.
      (error: unknown) => ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? ''),
    )
    if (isMissing && wasMissing) {
      clearInterval(timer)
      onRemoved()
    }
    wasMissing = isMissing
  }
  const timer = setInterval(() => void check(), homeCheckMs).unref()
}
