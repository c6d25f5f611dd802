import { hash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { compileTest } from '../../../shared/filter/tests.ts'
import type { FilesFeed } from '../../../shared/sources/local-feed.ts'
import { expandTilde, systemReason } from '../../../shared/home/home.ts'
import { isInside } from '../../../shared/sandbox/probe.ts'
import { giveToAll, type Source, SourceFault, type SourceServices, toPause } from '../source.ts'
import type { Unrun } from '../unrun.ts'

/*
 * Changes of files are events: `{event, path, name, size}`, once a file has been quiet for a while. Files that were
 * there before cause none. The home of doorward is left out, as its own answers would start it again.
 */

type FilesParts = SourceServices & {
  readonly feed: FilesFeed
  readonly homeFolder: string
  readonly unrun: Unrun
}

const quietMs = 500
const tellEveryMs = 60_000
const mostWaiting = 100

export class FilesSource implements Source {
  readonly #parts: FilesParts
  readonly #accepts: (path: string) => boolean
  #watcher: FSWatcher | undefined
  #retry: NodeJS.Timeout | undefined
  #state: 'connecting' | 'connected' | 'waiting' = 'connecting'
  #since: string | undefined
  #lastEventAt: string | undefined
  #problem: SourceFault | undefined
  #failures = 0
  #leftOut = 0
  #toldAt = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(parts: FilesParts) {
    this.#parts = parts
    this.#accepts = toFileTest(parts.feed.globs)
  }

  start(): void {
    const { feed, homeFolder } = this.#parts
    const isOwn = (path: string) => isInside(path, homeFolder)
    const watcher = watch([...new Set(feed.globs.map((glob) => toBase(glob)))], {
      ignoreInitial: true,
      followSymlinks: false,
      awaitWriteFinish: { stabilityThreshold: quietMs, pollInterval: 100 },
      ignored: (path, stats) => isOwn(path) || (stats?.isFile() === true && !this.#accepts(path)),
    })
    this.#watcher = watcher
    const names = { add: 'created', change: 'changed', unlink: 'removed' } as const
    for (const [name, event] of Object.entries(names))
      if (feed.events.includes(event))
        watcher.on(name as keyof typeof names, (path, stats) => {
          if (this.#accepts(path)) void this.#give(event, path, stats)
        })
    watcher.on('ready', () => {
      this.#state = 'connected'
      this.#since = new Date(this.#parts.now()).toISOString()
      this.#problem = undefined
      this.#failures = 0
    })
    watcher.on('error', (error) => void this.#fail(error))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#retry)
    await this.#watcher?.close()
    this.#parts.unrun.stop()
  }

  status(): ReturnType<Source['status']> {
    const problem = this.#problem
    return {
      how: `changes of ${this.#parts.feed.globs.join(', ')}`,
      state: this.#state,
      ...(this.#since !== undefined && { since: this.#since }),
      ...(this.#lastEventAt !== undefined && { lastEventAt: this.#lastEventAt }),
      ...(this.#leftOut > 0 && { ignored: this.#leftOut }),
      ...(problem && {
        problem: { code: problem.code, detail: problem.message, hint: problem.hint ?? '' },
      }),
    }
  }

  /** Begins again after a pause: a limit of the system, or a folder that went away. */
  async #fail(error: unknown): Promise<void> {
    if (this.#isStopped || this.#state === 'waiting') return
    this.#state = 'waiting'
    this.#since = undefined
    this.#failures += 1
    this.#problem = new SourceFault(`files cannot be watched: ${systemReason(error)}`, {
      hint: 'name a smaller folder in source.files; on Linux: sysctl fs.inotify.max_user_watches',
    })
    this.#parts.tell(this.#problem)
    await this.#watcher?.close()
    this.#retry = setTimeout(() => this.start(), toPause(this.#failures)).unref()
  }

  async #give(event: string, path: string, stats: Stats | undefined): Promise<void> {
    const { unrun, isServing } = this.#parts
    if (!isServing()) return
    if (unrun.count() >= mostWaiting) return this.#leave()
    const payload = { event, path, name: basename(path), size: stats?.size ?? null }
    const when = stats ? String(stats.mtimeMs) : new Date(this.#parts.now()).toISOString()
    const delivery = {
      rawHeaders: ['content-type', 'application/json'],
      bytes: Buffer.from(JSON.stringify(payload)),
      source: 'files' as const,
      // The path is a text of whoever made the file.
      deliveryId: hash('sha256', [event, path, when].join('\n')).slice(0, 32),
    }
    if (!(await giveToAll(delivery, this.#parts))) return this.#leave()
    this.#lastEventAt = new Date(this.#parts.now()).toISOString()
  }

  #leave(): void {
    this.#leftOut += 1
    const now = this.#parts.now()
    if (now - this.#toldAt < tellEveryMs) return
    this.#toldAt = now
    this.#parts.tell(
      new SourceFault(
        `files change faster than their agent works: ${this.#leftOut.toLocaleString('en')} changes were left out so far`,
        { hint: `${mostWaiting} events may wait; narrow source.files or source.events` },
      ),
    )
  }
}

/** The folder in which the files of a glob can be: all before its first star. */
export const toBase = (glob: string): string => {
  const whole = expandTilde(glob)
  const at = whole.search(/[*?[{]/)
  if (at === -1) return resolve(whole)
  return resolve(
    whole.slice(0, at).endsWith('/') ? whole.slice(0, at) : dirname(whole.slice(0, at)),
  )
}

/** True for the paths that one of the globs matches; `**` also stands for no folder. */
export const toFileTest = (globs: readonly string[]): ((path: string) => boolean) => {
  const whole = globs.map((glob) => {
    const base = toBase(glob)
    const rest = expandTilde(glob).slice(base.length)
    return /[*?[{]/.test(glob) ? `${join(base, '/')}${rest.replace(/^\//, '')}` : base
  })
  const all = whole.flatMap((glob) => [glob, glob.replaceAll('**/', '')])
  const { accepts } = compileTest('glob', [...new Set(all)])
  return (path) => accepts(path.split(sep).join('/'))
}
