import type { Dirent } from 'node:fs'
import { chmod, lstat, mkdir, opendir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { Git } from './git.ts'
import type { Mirror } from './mirror.ts'
import { foldPath, steersAgent } from './steering.ts'
import { listNames, toIndexInfo, type TreeFile, whole, type Worktree } from './worktree.ts'

const maxChangedBytes = 100 * 1024 * 1024
/** Each of them becomes a file of the mirror. */
const maxChangedFiles = 10_000
const maxPathBytes = 4096

/** The ref in the mirror of what an agent changed, undefined where nothing is left; and what was left out. */
export type Captured = {
  readonly ref: string | undefined
  readonly notes: readonly string[]
}

/**
 * Commits on `head` what an agent has changed in its worktree. Files that steer an agent, files in LFS, submodules
 * and replaced links stay as they are in `head`.
 */
export const commitChanges = async (
  git: Git,
  { gitDir, remote, repository: name }: Mirror,
  { path, index, tree, isProtected }: Worktree,
  head: string,
  ref: string,
  message: string,
  signal: AbortSignal,
): Promise<Captured> => {
  const at = { cwd: path, gitDir, worktree: path, index, remote, signal }
  const lines = async (args: readonly string[]): Promise<string[]> => {
    const text = whole(await git(args, at)).toString('latin1')
    return text.split('\0').slice(0, -1)
  }
  // A repository in the worktree could bring configuration that git obeys; a pipe, such as one with the name
  // .gitignore, keeps it waiting.
  await makeSafe(Buffer.from(path), { bytes: 0, lines: 0 }, { signal, entries: 0 })
  const { stdout, cut } = await git(
    ['ls-files', '-z', '--modified', '--others', '--exclude-standard'],
    { ...at, outputLimitBytes: maxChangedFiles * maxPathBytes },
  )
  const changed = stdout.toString('latin1').split('\0').slice(0, -1)
  if (cut || changed.length > maxChangedFiles)
    throw new DoorwardError(
      'workspace-failed',
      `the agent changed more than ${maxChangedFiles} files in ${name}`,
    )
  if ((await sizeOf(path, changed, signal)) > maxChangedBytes)
    throw new DoorwardError(
      'workspace-failed',
      `the agent changed more than ${maxChangedBytes / 1024 / 1024} MB in ${name}`,
    )
  await git(['add', '--all', '.'], at)
  const raw = await lines([
    'diff-index',
    '--cached',
    '--raw',
    '-z',
    '--no-renames',
    '--no-abbrev',
    tree,
  ])
  const all = parseRaw(raw)
  const open = all.filter((change) => !isProtected(change.path))
  const inLfs = await findContentOfLfs(git, at, open)
  const changes = open.filter((change) => !inLfs.has(change.path))
  const notes = describeLeft(
    all.filter((change) => !changes.includes(change)),
    inLfs,
  )
  if (changes.length === 0) return { ref: undefined, notes }
  const own = { index: `${index}.commit` }
  await git(['read-tree', head], { ...at, ...own })
  const isGone = ({ mode }: { readonly mode: string }) => mode === '000000'
  const input = toIndexInfo(
    changes.filter(isGone),
    changes.filter((change) => !isGone(change)),
  )
  await git(['update-index', '--replace', '-z', '--index-info'], { ...at, ...own, input })
  const made = await git(['write-tree', '--missing-ok'], { ...at, ...own })
  const commit = await git(['commit-tree', String(made.stdout).trim(), '-p', head], {
    ...at,
    input: `${message.trimEnd()}\n`,
  })
  await git(['update-ref', ref, String(commit.stdout).trim()], at)
  return { ref, notes }
}

/** Submodules and replaced links are in the notes of the checkout. */
const describeLeft = (left: readonly TreeFile[], inLfs: ReadonlySet<string>): string[] => {
  const paths = left.map(({ path }) => path)
  const steering = paths.filter((path) => steersAgent(path))
  const content = paths.filter((path) => inLfs.has(path))
  return [
    ['as they steer an agent', steering] as const,
    ['as they are in LFS, and doorward makes no pointers', content] as const,
  ].flatMap(([why, some]) =>
    some.length === 0 ? [] : [`the change leaves out, ${why}: ${listNames(some)}`],
  )
}

const pointer = 'version https://git-lfs.github.com/spec/v1\n'
const maxPointerBytes = 1024

/** Changed files that `.gitattributes` keeps in LFS, and that have their content in place of a pointer. */
const findContentOfLfs = async (
  git: Git,
  at: Parameters<Git>[1] & { readonly worktree: string },
  changes: readonly TreeFile[],
): Promise<ReadonlySet<string>> => {
  const files = changes.filter(({ mode }) => mode.startsWith('100'))
  if (files.length === 0) return new Set()
  // The attributes of the mirror stand above those of the repository, so this asks an empty one.
  const gitDir = `${at.worktree}.attributes`
  for (const name of ['objects', 'refs']) await mkdir(join(gitDir, name), { recursive: true })
  await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/main\n')
  const input = Buffer.from(files.map(({ path }) => `${path}\0`).join(''), 'latin1')
  const asked = { ...at, gitDir, index: undefined, remote: undefined, input }
  const { stdout } = await git(['check-attr', '-z', '--stdin', 'filter'], asked)
  const words = stdout.toString('latin1').split('\0')
  const inLfs = words.filter((_, place) => place % 3 === 0 && words[place + 2] === 'lfs')
  const found = new Set<string>()
  for (const path of inLfs) {
    const place = Buffer.concat([Buffer.from(`${at.worktree}/`), Buffer.from(path, 'latin1')])
    const { size } = await lstat(place)
    const text = size > maxPointerBytes ? '' : await readFile(place, 'latin1')
    if (!text.startsWith(pointer)) found.add(path)
  }
  return found
}

/** `:100644 100755 <hash> <hash> M`, then the path. */
const parseRaw = (lines: readonly string[]) =>
  lines.flatMap((line, place) => {
    if (place % 2 === 1) return []
    const [, mode = '', , hash = ''] = line.split(' ')
    return [{ mode, hash, path: lines[place + 1] ?? '' }]
  })

const repository = /^(\.git|git~\d+)[. ]*$/i

/** Patterns that git reads for the files of one folder, from there up to the root of the worktree. */
type Patterns = { readonly bytes: number; readonly lines: number }

/** Git compares each of them with each file: 300,000 take minutes, and a sparse file can have any size. */
const maxPatterns: Patterns = { bytes: 1024 * 1024, lines: 10_000 }

const patternFiles = ['.gitignore', '.gitattributes']

/** One walk through a worktree, and how many files and folders it has met. */
type Walk = { readonly signal: AbortSignal; entries: number }

const maxEntries = 1_000_000

/**
 * Removes repositories, pipes and sockets, opens folders, and counts patterns before git reads them. Names are bytes:
 * not all are UTF-8.
 */
const makeSafe = async (folder: Buffer, above: Patterns, walk: Walk): Promise<void> => {
  await makeAccessible(folder, 0o700)
  let patterns = above
  const folders: Buffer[] = []
  for await (const entry of await openFolder(folder)) {
    walk.signal.throwIfAborted()
    walk.entries += 1
    if (walk.entries > maxEntries)
      throw new DoorwardError('workspace-failed', `the agent left more than ${maxEntries} files`)
    const path = Buffer.concat([folder, Buffer.from('/'), entry.name])
    const name = entry.name.toString('latin1')
    if (entry.isDirectory()) folders.push(path)
    else if (repository.test(name) || !(entry.isFile() || entry.isSymbolicLink()))
      await rm(path, { force: true })
    else if (entry.isFile() && patternFiles.includes(foldPath(name)))
      patterns = await addPatterns(path, patterns)
  }
  for (const path of folders) {
    await makeSafe(path, patterns, walk)
    const name = path.subarray(folder.length + 1).toString('latin1')
    if (repository.test(name)) await rm(path, { recursive: true, force: true })
  }
}

/** The entries one after the other: a list of millions would take the daemon's memory. */
const openFolder = async (folder: Buffer): Promise<AsyncIterable<Dirent<Buffer>>> => {
  // The types leave out names in bytes.
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: 1000 }
  return (await opendir(folder, options)) as AsyncIterable<unknown> as AsyncIterable<Dirent<Buffer>>
}

const addPatterns = async (path: Buffer, { bytes, lines }: Patterns): Promise<Patterns> => {
  await makeAccessible(path, 0o400)
  const { size } = await lstat(path)
  const text = bytes + size > maxPatterns.bytes ? undefined : await readFile(path, 'latin1')
  const sum = { bytes: bytes + size, lines: lines + (text?.split('\n').length ?? 0) }
  if (text !== undefined && sum.lines <= maxPatterns.lines) return sum
  const shown = toPlainLine(path.toString()).split('/').slice(-2).join('/')
  throw new DoorwardError(
    'workspace-failed',
    `${shown} has too many patterns: with those of the folders above, ${maxPatterns.lines} lines and ${maxPatterns.bytes / 1024 ** 2} MB are allowed`,
  )
}

/** The agent may have taken these rights from its owner, and git commits none of them. */
const makeAccessible = async (path: Buffer, rights: number): Promise<void> => {
  const { mode } = await lstat(path)
  if ((mode & rights) !== rights) await chmod(path, (mode & 0o777) | rights)
}

const sizeOf = async (
  folder: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<number> => {
  let bytes = 0
  for (const path of paths) {
    signal.throwIfAborted()
    const place = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, 'latin1')])
    const stats = await lstat(place).catch(() => undefined)
    if (stats?.isFile()) await makeAccessible(place, 0o400)
    bytes += stats?.size ?? 0
  }
  return bytes
}
