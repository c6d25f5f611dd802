import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { ClearedWorkspaces, WorkspaceSummary } from '../../shared/api/workspaces.ts'
import { isOrphaned, removeFolder } from '../agents/workspace.ts'
import { createKeyedMutex } from '../util/concurrency.ts'
import { addressName, mirrorName } from './mirror.ts'

/*
 * <home>/workspaces/<name>-<hash>/: `mirror.git`, `address`, and `runs` with a folder for each run. Those of a
 * killed daemon are found by their names. During a restart two processes use the same mirrors.
 */

export type StoreLimits = { readonly maxBytes: number; readonly keepMs: number }

const runsName = 'runs'

export class WorkspaceStore {
  readonly #root: string
  /** One fetch, or removal, of a mirror at a time. */
  readonly withLock = createKeyedMutex()

  constructor(root: string) {
    this.#root = root
  }

  /** The folder of a mirror. One with another depth has other commits. */
  folderOf(url: string, depth: number | undefined): string {
    const hash = createHash('sha256')
      .update(`${url}\n${depth ?? ''}`)
      .digest('hex')
      .slice(0, 12)
    return join(this.#root, `${toName(url)}-${hash}`)
  }

  async makeRunsFolder(folder: string): Promise<string> {
    const runs = join(folder, runsName)
    await mkdir(runs, { recursive: true, mode: 0o700 })
    return runs
  }

  /** Removes the folder of a mirror that could never be fetched. */
  async removeEmpty(folder: string): Promise<void> {
    if (!existsSync(join(folder, mirrorName))) await this.#remove(basename(folder))
  }

  async list(): Promise<WorkspaceSummary[]> {
    const found: WorkspaceSummary[] = []
    for (const name of await namesIn(this.#root)) {
      const folder = join(this.#root, name)
      const repository = await readFile(join(folder, addressName), 'utf8').catch(() => undefined)
      const used = await stat(join(folder, mirrorName)).catch(() => undefined)
      found.push({
        name,
        repository: repository ?? name,
        bytes: await measure(folder),
        running: (await this.#runsIn(folder)).length,
        lastUsedAt: used?.mtime.toISOString() ?? null,
      })
    }
    return found.toSorted((a, b) => (b.lastUsedAt ?? '').localeCompare(a.lastUsedAt ?? ''))
  }

  /** Removes all mirrors that no run uses. */
  async clear(): Promise<ClearedWorkspaces> {
    await this.#removeOrphans()
    const all = await this.list()
    let [removed, bytes] = [0, 0]
    for (const summary of all)
      if (await this.#remove(summary.name)) {
        removed += 1
        bytes += summary.bytes
      }
    return { removed, bytes, inUse: all.length - removed }
  }

  /** Removes what a killed daemon left, what was not used for long, and the oldest over the limit. */
  async trim({ maxBytes, keepMs }: StoreLimits): Promise<void> {
    await this.#removeOrphans()
    let total = 0
    for (const { name, bytes, lastUsedAt } of await this.list()) {
      const isOld = Date.now() - Date.parse(lastUsedAt ?? '1970-01-01') > keepMs
      const isRemoved =
        (isOld || total + bytes > maxBytes) && (await this.#remove(name).catch(() => false))
      if (!isRemoved) total += bytes
    }
  }

  async #remove(name: string): Promise<boolean> {
    const folder = join(this.#root, name)
    return this.withLock(folder, async () => {
      if ((await this.#runsIn(folder)).length > 0) return false
      await removeFolder(folder)
      return true
    })
  }

  async #runsIn(folder: string): Promise<string[]> {
    return (await namesIn(join(folder, runsName))).filter((name) => !isOrphaned(name))
  }

  async #removeOrphans(): Promise<void> {
    for (const name of await namesIn(this.#root)) {
      const folder = join(this.#root, name)
      await this.withLock(folder, async () => {
        for (const run of await namesIn(join(folder, runsName)))
          if (isOrphaned(run))
            await removeFolder(join(folder, runsName, run)).catch(() => undefined)
        // Locks of a git that was killed keep the next one out.
        if ((await this.#runsIn(folder)).length === 0) await removeLocks(join(folder, mirrorName))
      })
    }
  }
}

/** For a person who looks into the folder; the hash behind it is what counts. */
const toName = (url: string): string =>
  basename(url.replace(/\/+$/, ''), '.git')
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^\.+/, '')
    .slice(0, 60) || 'repository'

const namesIn = async (folder: string): Promise<string[]> => {
  try {
    return await readdir(folder)
  } catch {
    return []
  }
}

const removeLocks = async (gitDir: string): Promise<void> => {
  await rm(`${gitDir}.new`, { recursive: true, force: true })
  for (const name of ['.', 'objects/pack', 'objects/info'])
    for (const entry of await namesIn(join(gitDir, name)))
      if (/\.lock$|^tmp_/.test(entry))
        await rm(join(gitDir, name, entry), { recursive: true, force: true })
  const refs = join(gitDir, 'refs', 'doorward')
  // Refs of runs that were killed. Git knows by other refs what it has.
  await rm(join(refs, 'runs'), { recursive: true, force: true })
  for (const entry of await readdir(refs, { recursive: true }).catch(() => []))
    if (entry.endsWith('.lock')) await rm(join(refs, entry), { force: true })
}

const measure = async (folder: string): Promise<number> => {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await measure(path)
    else bytes += (await stat(path).catch(() => undefined))?.size ?? 0
  }
  return bytes
}
