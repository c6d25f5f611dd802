import { mkdir, readlink, realpath, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, sep } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { Git, GitOutput } from './git.ts'
import type { Commits } from './fetch.ts'
import type { Mirror } from './mirror.ts'
import { steersAgent } from './steering.ts'

/*
 * The files of one commit in a folder of their own: without `.git`, so that nothing an agent writes there can
 * be configuration for git, and with an index beside it. What would steer an agent is replaced in a tree
 * before a file is written.
 */

/** One file of a tree. Paths are bytes, one character each (latin1). */
export type TreeFile = { readonly mode: string; readonly hash: string; readonly path: string }

/** Half a million files and more; as a list they need some times as much memory. */
const maxListBytes = 64 * 1024 * 1024

const link = '120000'
const submodule = '160000'

export type Worktree = {
  readonly path: string
  readonly index: string
  /** What was written: `head` but for what is protected. */
  readonly tree: string
  /** Paths that differ from `head` by us, and stay there as they are when the agent's changes are committed. */
  readonly isProtected: (path: string) => boolean
  readonly notes: readonly string[]
}

/** Writes the files of `head` into an empty folder. */
export const checkOut = async (
  git: Git,
  mirror: Mirror,
  { head, base }: Commits,
  path: string,
  signal: AbortSignal,
  maxBytes: number,
): Promise<Worktree> => {
  const { gitDir, remote } = mirror
  const index = `${path}.index`
  await mkdir(path, { mode: 0o700 })
  const at = { cwd: path, gitDir, index, remote, signal }
  const list = async (commit: string): Promise<TreeFile[]> => {
    const limited = { ...at, outputLimitBytes: maxListBytes }
    return parseTree(whole(await git(['ls-tree', '-r', '-z', '--full-tree', commit], limited)))
  }
  const files = await list(head)
  const isOurs = ({ mode, path }: TreeFile) =>
    mode === submodule || (base !== head && steersAgent(path, mode === link))
  const removed = files.filter(isOurs)
  const added =
    base === undefined || base === head ? [] : await readBase(git, at, await list(base), files)
  const tree = await makeTree(git, at, head, removed, added)
  await withinRoom(path, maxBytes, signal, async (limited) =>
    git(['read-tree', '-m', '-u', tree], { ...at, worktree: path, signal: limited }),
  )
  const left = await replaceLinks(path, files, signal)
  return {
    path,
    index,
    tree,
    isProtected: (name) => steersAgent(name) || left.includes(name) || isInSubmodule(name, removed),
    notes: describe(removed, added, base, left),
  }
}

/** Of what is free on the disk, as others need some. */
const maxShare = 0.9
const measureMs = 100

/** One large file costs a sender little, and a tree can name it a million times. */
const withinRoom = async (
  folder: string,
  maxBytes: number,
  signal: AbortSignal,
  write: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> => {
  const measureFree = async () => {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  }
  const free = await measureFree()
  const limit = Math.min(maxBytes, free * maxShare)
  const control = new AbortController()
  const measure = async () => {
    if (free - (await measureFree()) > limit) control.abort('immediately')
  }
  const timer = setInterval(() => void measure().catch(() => undefined), measureMs)
  try {
    await write(AbortSignal.any([signal, control.signal]))
    await measure()
  } catch (error) {
    if (!control.signal.aborted) throw error
  } finally {
    clearInterval(timer)
  }
  if (control.signal.aborted)
    throw new DoorwardError('workspace-failed', 'the files of the commit need too much room', {
      hint: 'free some, or raise workspaces.max_size: doorward config edit gateway',
    })
}

const isInSubmodule = (name: string, files: readonly TreeFile[]): boolean =>
  files.some(
    ({ mode, path }) => mode === submodule && (name === path || name.startsWith(`${path}/`)),
  )

type At = Parameters<Git>[1]

/** The steering files of `base`. A link among them is followed there, as `head` may change what it leads to. */
const readBase = async (
  git: Git,
  at: At,
  base: readonly TreeFile[],
  head: readonly TreeFile[],
): Promise<TreeFile[]> => {
  const byPath = new Map(base.map((file) => [file.path, file]))
  const others = head.filter(({ mode, path }) => !steersAgent(path, mode === link))
  const names = new Set(others.map(({ path }) => path))
  const found: TreeFile[] = []
  for (const file of base) {
    const { mode, path } = file
    if (!steersAgent(path, mode === link) || mode === submodule) continue
    // A folder there is a file, or a link, here.
    const parents = path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))
    if (parents.some((parent) => names.has(parent))) continue
    if (mode !== link) {
      found.push(file)
      continue
    }
    const { stdout } = await git(['cat-file', 'blob', file.hash], at)
    const target = resolveIn(path, stdout.toString('latin1'))
    const meant = target === undefined ? undefined : byPath.get(target)
    if (meant && meant.mode !== link && meant.mode !== submodule) found.push({ ...meant, path })
  }
  return found
}

/** The path that a link names, where it stays in the tree. */
const resolveIn = (path: string, target: string): string | undefined => {
  if (target.startsWith('/')) return undefined
  const parts = path.split('/').slice(0, -1)
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return undefined
  }
  return parts.join('/')
}

/** What is cut off could not be checked. */
export const whole = ({ stdout, cut }: GitOutput): Buffer => {
  if (!cut) return stdout
  throw new DoorwardError('workspace-failed', 'the repository has too many files for a workspace')
}

const parseTree = (output: Buffer): TreeFile[] =>
  output
    .toString('latin1')
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => {
      const tab = line.indexOf('\t')
      const [mode = '', , hash = ''] = line.slice(0, tab).split(' ')
      return { mode, hash, path: line.slice(tab + 1) }
    })

/** The lines of `update-index --index-info`, removals first. */
export const toIndexInfo = (
  removed: readonly { readonly path: string }[],
  added: readonly TreeFile[],
): Buffer =>
  Buffer.from(
    [
      ...removed.map(({ path }) => `0 ${'0'.repeat(40)}\t${path}\0`),
      ...added.map(({ mode, hash, path }) => `${mode} ${hash}\t${path}\0`),
    ].join(''),
    'latin1',
  )

const makeTree = async (
  git: Git,
  at: At,
  head: string,
  removed: readonly TreeFile[],
  added: readonly TreeFile[],
): Promise<string> => {
  if (removed.length === 0 && added.length === 0) return head
  const index = `${at.index ?? ''}.new`
  await git(['read-tree', head], { ...at, index })
  const input = toIndexInfo(removed, added)
  await git(['update-index', '--replace', '-z', '--index-info'], { ...at, index, input })
  const { stdout } = await git(['write-tree', '--missing-ok'], { ...at, index })
  await rm(index, { force: true })
  return String(stdout).trim()
}

/**
 * Links that lead out of the folder, or nowhere, become files with the path that they name; returns them. What
 * they lead to counts, not how they are written: they may go through each other.
 */
const replaceLinks = async (
  folder: string,
  files: readonly TreeFile[],
  signal: AbortSignal,
): Promise<string[]> => {
  const root = await realpath(folder)
  const isIn = (path: string | undefined) =>
    path !== undefined && (path === root || path.startsWith(root + sep))
  const replaced: string[] = []
  for (const { path } of files.filter(({ mode }) => mode === link)) {
    signal.throwIfAborted()
    const place = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, 'latin1')])
    // In a malformed tree the folder of a link may itself be a link that leads out.
    const parent = await realpath(Buffer.from(dirname(place.toString('latin1')), 'latin1')).catch(
      () => undefined,
    )
    const target = isIn(parent) ? await readlink(place).catch(() => undefined) : undefined
    if (target === undefined) continue
    if (isIn(await realpath(place).catch(() => undefined))) continue
    await rm(place)
    await writeFile(place, target, { flag: 'wx' })
    replaced.push(path)
  }
  return replaced
}

const describe = (
  removed: readonly TreeFile[],
  added: readonly TreeFile[],
  base: string | undefined,
  links: readonly string[],
): string[] => {
  const ofBase = new Map(added.map((file) => [file.path, file.hash]))
  const steering = removed
    .filter(({ mode }) => mode !== submodule)
    .filter(({ path, hash }) => ofBase.get(path) !== hash)
    .map(({ path }) => path)
  const modules = removed.filter(({ mode }) => mode === submodule).map(({ path }) => path)
  const how = base === undefined ? 'left out' : 'as in base'
  return [
    ...(steering.length === 0
      ? []
      : [`files that steer an agent are ${how}: ${listNames(steering)}`]),
    ...(links.length === 0 ? [] : [`links that lead out are plain files: ${listNames(links)}`]),
    ...(modules.length === 0 ? [] : [`submodules are left out: ${listNames(modules)}`]),
  ]
}

const shownNames = 3

/** The first names of files, and how many more there are. */
export const listNames = (paths: readonly string[]): string => {
  const shown = paths
    .slice(0, shownNames)
    .map((path) => toPlainLine(Buffer.from(path, 'latin1').toString()).slice(0, 100))
  const more = paths.length - shown.length
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(', ')
}
