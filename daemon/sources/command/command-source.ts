import { StringDecoder } from 'node:string_decoder'
import type { CommandFeed } from '../../../shared/sources/local-feed.ts'
import { systemCode } from '../../../shared/errors.ts'
import { systemReason } from '../../../shared/home/home.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { cleanEnvironment } from '../../agents/environment.ts'
import type { RunProcess } from '../../agents/orphans.ts'
import { giveToAll, type Source, SourceFault, type SourceServices, toPause } from '../source.ts'
import type { Unrun } from '../unrun.ts'

/*
 * The story of a program whose lines are events:
 *
 *   start -> its lines, each an event, or those of `batch` together -> it ends -> a pause -> start
 *
 * It is the owner's own program, so it has no sandbox, but the clean environment of an agent. Of a flood only
 * `max_waiting` events wait: the newest lines are left out, counted, and the owner is told once a minute.
 */

type CommandParts = SourceServices & {
  readonly feed: CommandFeed
  readonly run: RunProcess
  /** The daemon's own. */
  readonly env: () => NodeJS.ProcessEnv
  readonly homeFolder: string
  /** The events of this source that no agent has taken yet. */
  readonly unrun: Unrun
}

const steadyMs = 60_000
const tellEveryMs = 60_000
/** A program may run for as long as a timer can wait. */
const longestRunMs = 2_000_000_000

export class CommandSource implements Source {
  readonly #parts: CommandParts
  readonly #control = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #state: 'connecting' | 'connected' | 'waiting' = 'connecting'
  #since: string | undefined
  #lastEventAt: string | undefined
  #problem: SourceFault | undefined
  #leftOut = 0
  #toldAt = Number.NEGATIVE_INFINITY
  #lines: string[] = []
  #batchTimer: NodeJS.Timeout | undefined
  /** One event after the other, so that they keep the order of their lines. */
  #giving: Promise<void> = Promise.resolve()
  /** Lines on their way into the queue. */
  #pending = 0

  constructor(parts: CommandParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running = this.#keepRunning()
  }

  async stop(): Promise<void> {
    this.#control.abort()
    clearTimeout(this.#batchTimer)
    await this.#running
    await this.#giving
    this.#parts.unrun.stop()
  }

  status(): ReturnType<Source['status']> {
    const problem = this.#problem
    return {
      how: `the lines of ${this.#parts.feed.argv[0]}`,
      state: this.#state,
      ...(this.#since !== undefined && { since: this.#since }),
      ...(this.#lastEventAt !== undefined && { lastEventAt: this.#lastEventAt }),
      ...(this.#leftOut > 0 && { ignored: this.#leftOut }),
      ...(problem && {
        problem: { code: problem.code, detail: problem.message, hint: problem.hint ?? '' },
      }),
    }
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#control
    for (let failures = 0; !signal.aborted; failures += 1) {
      const startedMs = this.#parts.now()
      const why = await this.#runOnce()
      if (signal.aborted) return
      if (this.#parts.now() - startedMs > steadyMs) failures = 0
      this.#state = 'waiting'
      this.#since = undefined
      // A program that ends now and then is no problem.
      if (failures > 0)
        this.#problem = new SourceFault(
          `${this.#parts.feed.argv[0]} ends at its start again and again: ${why}`,
          { hint: 'run it in a terminal: source.command in webhooks.yaml' },
        )
      await waitFor(toPause(failures + 1), signal)
    }
  }

  /** Runs the program until it ends; returns how it ended. */
  async #runOnce(): Promise<string> {
    const { feed, run, env, homeFolder } = this.#parts
    const reader = new LineReader()
    this.#state = 'connected'
    this.#since = new Date(this.#parts.now()).toISOString()
    try {
      const { exitCode, exitSignal, stderr } = await run({
        argv: feed.argv,
        cwd: homeFolder,
        env: cleanEnvironment(env(), {}),
        input: '',
        timeoutMs: longestRunMs,
        outputLimitBytes: 0,
        onOutput: (chunk) => this.#take(reader.read(chunk)),
        signal: this.#control.signal,
      })
      this.#take(reader.end())
      const [last = ''] = stderr.toString('utf8').trimEnd().split('\n').slice(-1)
      const how = exitCode === null ? `ended by ${exitSignal}` : `exit code ${exitCode}`
      return last === '' ? how : `${how}: ${toPlainLine(last)}`
    } catch (error) {
      return systemCode(error) === 'ENOENT' ? 'there is no such program' : systemReason(error)
    }
  }

  #take(lines: readonly string[]): void {
    if (lines.length === 0 || this.#control.signal.aborted) return
    const { batchMs } = this.#parts.feed
    if (batchMs === 0) {
      for (const line of lines) this.#give(() => toPayload(line), 1)
      return
    }
    const room = mostInBatch - this.#lines.length
    this.#lines.push(...lines.slice(0, room))
    if (lines.length > room) this.#leave(lines.length - Math.max(0, room))
    this.#batchTimer ??= setTimeout(() => {
      this.#batchTimer = undefined
      const batch = this.#lines
      this.#lines = []
      this.#give(() => toBatch(batch), batch.length)
    }, batchMs)
  }

  #give(toEvent: () => object, lines: number): void {
    const { feed, unrun, isServing } = this.#parts
    if (this.#pending + unrun.count() >= feed.maxWaiting || !isServing()) {
      this.#leave(lines)
      return
    }
    this.#pending += 1
    this.#giving = this.#giveAfter(this.#giving, toEvent, lines)
  }

  async #giveAfter(before: Promise<void>, toEvent: () => object, lines: number): Promise<void> {
    await before
    const delivery = {
      rawHeaders: ['content-type', 'application/json'],
      bytes: Buffer.from(JSON.stringify(toEvent())),
      source: 'command' as const,
    }
    const isTaken = await giveToAll(delivery, this.#parts)
    this.#pending -= 1
    if (!isTaken) return this.#leave(lines)
    this.#problem = undefined
    this.#lastEventAt = new Date(this.#parts.now()).toISOString()
  }

  #leave(lines: number): void {
    this.#leftOut += lines
    const now = this.#parts.now()
    if (now - this.#toldAt < tellEveryMs) return
    this.#toldAt = now
    const { feed, tell } = this.#parts
    tell(
      new SourceFault(
        `${feed.argv[0]} writes faster than its agent works: ${this.#leftOut.toLocaleString('en')} lines were left out so far`,
        {
          hint: `${feed.maxWaiting} events may wait: source.max_waiting; or gather lines: source.batch`,
        },
      ),
    )
  }
}

const mostInBatch = 1000

const waitFor = async (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })

/** A line that is longer is cut here, and what follows up to its end is left out. */
const longestLine = 256 * 1024

/** Cuts the output of a program into lines. A byte that is no UTF-8 becomes a replacement character. */
export class LineReader {
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''
  #isCut = false

  /** The lines that end in this piece; empty ones are left out. */
  read(chunk: Buffer): string[] {
    const pieces = this.#decoder.write(chunk).split('\n')
    return pieces.flatMap((piece, index) => {
      if (!this.#isCut) this.#rest += piece
      if (this.#rest.length > longestLine) {
        this.#isCut = true
        this.#rest = this.#rest.slice(0, longestLine)
      }
      return index === pieces.length - 1 ? [] : this.#take()
    })
  }

  /** The last line, where the program has ended without ending it. */
  end(): string[] {
    this.#rest += this.#decoder.end()
    return this.#take()
  }

  #take(): string[] {
    const line = this.#rest.replace(/\r$/, '')
    this.#rest = ''
    this.#isCut = false
    return line.trim() === '' ? [] : [line]
  }
}

/** The payload of one line: the JSON object that it is, else `{line}`. */
export const toPayload = (line: string): object => {
  if (!line.trimStart().startsWith('{')) return { line }
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : { line }
  } catch {
    return { line }
  }
}

/** One event for the lines of a time. */
export const toBatch = (lines: readonly string[]): object => ({ lines: lines.map(parsedLine) })

const parsedLine = (line: string): unknown => {
  const payload = toPayload(line)
  return 'line' in payload && Object.keys(payload).length === 1 ? line : payload
}
