import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { DoorwardError } from '../../shared/errors.ts'
import type { Git } from './git.ts'
import type { Mirror } from './mirror.ts'
import { toIndexInfo, whole, type Worktree } from './worktree.ts'

const maxChangedBytes = 100 * 1024 * 1024

/**
 * Commits on `head` what an agent has changed in its worktree, and returns the ref in the mirror; undefined
 * when nothing changed. Files that steer an agent, submodules and replaced links stay as they are in `head`.
 */
export const commitChanges = async (
  git: Git,
  { gitDir, remote, repository: name }: Mirror,
  { path, index, tree, isProtected }: Worktree,
  head: string,
  ref: string,
  message: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const at = { cwd: path, gitDir, worktree: path, index, remote, signal }
  const lines = async (args: readonly string[]): Promise<string[]> => {
    const text = whole(await git(args, at)).toString('latin1')
    return text.split('\0').slice(0, -1)
  }
  // A repository in the worktree could bring configuration that git obeys; a pipe, such as one with the name
  // .gitignore, keeps it waiting.
  await removeSpecial(Buffer.from(path))
  const changed = await lines(['ls-files', '-z', '--modified', '--others', '--exclude-standard'])
  if ((await sizeOf(path, changed)) > maxChangedBytes)
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
  const changes = parseRaw(raw).filter((change) => !isProtected(change.path))
  if (changes.length === 0) return undefined
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
  return ref
}

/** `:100644 100755 <hash> <hash> M`, then the path. */
const parseRaw = (lines: readonly string[]) =>
  lines.flatMap((line, place) => {
    if (place % 2 === 1) return []
    const [, mode = '', , hash = ''] = line.split(' ')
    return [{ mode, hash, path: lines[place + 1] ?? '' }]
  })

const repository = /^(\.git|git~\d+)[. ]*$/i

/** Removes repositories, pipes and sockets, and opens folders. Names are bytes: not all are UTF-8. */
const removeSpecial = async (folder: Buffer): Promise<void> => {
  await makeAccessible(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
    const path = Buffer.concat([folder, Buffer.from('/'), entry.name])
    if (entry.isDirectory()) await removeSpecial(path)
    const isRepository = repository.test(entry.name.toString('latin1'))
    if (isRepository || !(entry.isDirectory() || entry.isFile() || entry.isSymbolicLink()))
      await rm(path, { recursive: true, force: true })
  }
}

/** The agent may have taken these rights from its owner, and git commits none of them. */
const makeAccessible = async (path: Buffer, rights: number): Promise<void> => {
  const { mode } = await lstat(path)
  if ((mode & rights) !== rights) await chmod(path, (mode & 0o777) | rights)
}

const sizeOf = async (folder: string, paths: readonly string[]): Promise<number> => {
  let bytes = 0
  for (const path of paths) {
    const place = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(path, 'latin1')])
    const stats = await lstat(place).catch(() => undefined)
    if (stats?.isFile()) await makeAccessible(place, 0o400)
    bytes += stats?.size ?? 0
  }
  return bytes
}
