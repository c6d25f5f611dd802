import { withoutPrefix } from '../../delivery/format/place-comments.ts'
import type { Workspace } from '../workspaces.ts'
import type { Context, ContextSource } from './source.ts'
import { cutLines, cutList, formatSize, showName } from './source.ts'

/*
 * Git describes a change, from where it left `base` to `head`.
 */

export const diffOptions = ['--no-color', '--no-ext-diff', '--no-textconv', '--find-renames']

/** The longest patch that is read; no limit of a context is longer. */
const maxPatchBytes = 32 * 1024 * 1024
const maxListBytes = 16 * 1024 * 1024
/** The daemon keeps the hunks of an event in memory with it. */
const maxHunkCharacters = 256 * 1024

/** The patch, as git writes it: files that do not fit are named and left out. */
export const readDiff = async (source: ContextSource): Promise<Context> => {
  const { workspace, limitBytes, show } = source
  const { files, from } = await listFiles(source)
  if (files.length === 0) return { text: noChange }
  const { stdout, cut } = await workspace.git(
    ['-c', 'core.quotePath=false', 'diff', '--patch', ...diffOptions, from, workspace.head],
    { outputLimitBytes: maxPatchBytes },
  )
  const patches = splitPatch(stdout)
  // The last one may be a part.
  const whole = cut ? patches.slice(0, -1) : patches
  const kept: string[] = []
  const left: ChangedFile[] = []
  let room = limitBytes
  files.forEach((file, place) => {
    const patch = whole[place]
    const text = patch && patch.length <= room ? show(patch.toString()) : undefined
    const size = text === undefined ? Number.POSITIVE_INFINITY : Buffer.byteLength(text)
    if (text === undefined || size > room) {
      left.push(file)
      return
    }
    kept.push(text)
    room -= size
  })
  const [first] = patches
  const [beginning] = left
  const notRead = left.slice(0, maxNotRead).map(({ path }) => path)
  if (kept.length === 0 && first && beginning) {
    // Shown as escapes, hidden characters take more room.
    const shown = Buffer.from(show(cutLines(first, limitBytes).toString()))
    kept.push(
      cutLines(shown, limitBytes).toString(),
      `[cut: the rest of ${showName(beginning.path)}]\n`,
    )
    left.shift()
    if (left.length === 0) return { text: kept.join(''), note: 'the diff is cut', notRead }
  }
  if (left.length === 0) return { text: kept.join('') }
  return {
    text: [...kept, describeLeft(left, files.length, limitBytes)].join(''),
    note: `the diff leaves out ${left.length} of ${files.length} files`,
    notRead,
  }
}

/** More are only counted. */
const maxNotRead = 30

const noChange = '(no changes)\n'
const shownNames = 50

const describeLeft = (left: readonly ChangedFile[], all: number, limitBytes: number): string => {
  const shown = left.slice(0, shownNames).map(describeFile)
  const more = left.length - shown.length
  return [
    `[left out, as more than ${formatSize(limitBytes)}: ${left.length} of ${all} files]\n`,
    ...shown,
    ...(more > 0 ? [`and ${more} more\n`] : []),
  ].join('')
}

/** The names of what was changed, with the number of lines. */
export const readFiles = async (source: ContextSource): Promise<Context> => {
  const { files } = await listFiles(source)
  if (files.length === 0) return { text: noChange }
  return cutList(files.map(describeFile), 'files', source.limitBytes)
}

/** Newest first: hash, day, author and message. */
export const readCommits = async ({
  workspace,
  limitBytes,
  show,
}: ContextSource): Promise<Context> => {
  const { stdout } = await workspace.git(
    ['log', '-z', '--format=%h %as %an%n%B', ...toRange(workspace)],
    { outputLimitBytes: maxListBytes },
  )
  const commits = stdout.toString().split('\0').slice(0, -1)
  if (commits.length === 0) return { text: '(no commits)\n' }
  const texts = commits.map((commit) => {
    const [head = '', ...message] = show(commit).trimEnd().split('\n')
    return `${[head, ...message.map((line) => `    ${line}`.trimEnd())].join('\n')}\n`
  })
  return cutList(texts, 'commits', limitBytes)
}

const toRange = ({ base, head }: ContextSource['workspace']): string[] => [
  head,
  ...(base === undefined ? [] : [`^${base}`]),
]

type ChangedFile = {
  readonly kind: string
  readonly path: string
  /** The name before a rename. */
  readonly before: string | undefined
  /** Undefined for a binary file. */
  readonly lines: { readonly added: number; readonly removed: number } | undefined
}

const kinds: Readonly<Record<string, string>> = {
  A: 'added',
  C: 'copied',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'another type',
}

const describeFile = ({ kind, path, before, lines }: ChangedFile): string => {
  const names = before === undefined ? showName(path) : `${showName(before)} => ${showName(path)}`
  return `${kind} ${names} (${lines ? `+${lines.added} -${lines.removed}` : 'binary'})\n`
}

const listFiles = async ({
  workspace,
}: ContextSource): Promise<{ readonly files: readonly ChangedFile[]; readonly from: string }> => {
  const { git, head, base = head, start: from = base } = workspace
  const { stdout, cut } = await git(
    ['diff', '--raw', '--numstat', '-z', ...diffOptions, from, head],
    {
      outputLimitBytes: maxListBytes,
    },
  )
  const parts = stdout
    .toString()
    .split('\0')
    .slice(0, cut ? -1 : undefined)
  return { files: parseFiles(parts), from }
}

/** The names of what was changed, before and after a rename; undefined where there are too many. */
export const listChangedPaths = async ({
  git,
  head,
  base = head,
  start: from = base,
}: Workspace): Promise<readonly string[] | undefined> => {
  const args = ['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', from, head]
  const { stdout, cut } = await git(args, { outputLimitBytes: maxListBytes })
  return cut ? undefined : stdout.toString().split('\0').slice(0, -1)
}

/**
 * `:100644 100644 <hash> <hash> R90`, the path, and of a rename the new path; then `1\t2\t<path>`, of a rename
 * `1\t2\t` and both paths.
 */
const parseFiles = (parts: readonly string[]): ChangedFile[] => {
  const found: Omit<ChangedFile, 'lines'>[] = []
  const lines = new Map<string, ChangedFile['lines']>()
  let place = 0
  const next = (): string => parts[place++] ?? ''
  while (place < parts.length) {
    const head = next()
    const [, letter] = /^:[^\t]* ([A-Z])\d*$/.exec(head) ?? []
    if (letter !== undefined) {
      const path = next()
      const isMoved = letter === 'R' || letter === 'C'
      const [before, now] = isMoved ? [path, next()] : [undefined, path]
      found.push({ kind: kinds[letter] ?? 'changed', path: now, before })
      continue
    }
    const [, added, removed, path = ''] = /^(\d+|-)\t(\d+|-)\t([^]*)$/.exec(head) ?? []
    if (added === undefined) continue
    if (path === '') next()
    const name = path === '' ? next() : path
    lines.set(name, added === '-' ? undefined : { added: Number(added), removed: Number(removed) })
  }
  const none = { added: 0, removed: 0 }
  return found.map((file) => ({
    ...file,
    lines: lines.has(file.path) ? lines.get(file.path) : none,
  }))
}

const start = Buffer.from('diff --git ')

/**
 * The patches of single files: only their heads begin so, as git quotes names with line breaks. A file that
 * became a link has two heads with the same names.
 */
export const splitPatch = (patch: Buffer): Buffer[] => {
  const places: number[] = []
  let before = ''
  for (let place = patch.indexOf(start); place !== -1; place = findNext(patch, place)) {
    const end = patch.indexOf('\n', place)
    const line = patch.toString('latin1', place, end === -1 ? undefined : end)
    if (line !== before) places.push(place)
    before = line
  }
  return places.map((place, index) => patch.subarray(place, places[index + 1]))
}

const findNext = (patch: Buffer, place: number): number => {
  const found = patch.indexOf(`\n${String(start)}`, place)
  return found === -1 ? -1 : found + 1
}

/** The diffs of these files with the kind of each line and without its text. Files that do not fit are left out. */
export const readHunks = async (
  { git, head, from }: Pick<Workspace, 'git' | 'head'> & { readonly from: string },
  paths: readonly string[],
): Promise<Record<string, string>> => {
  const wanted = [...new Set(paths.flatMap((path) => [path, withoutPrefix(path)]))]
  const literally = ['--literal-pathspecs', '-c', 'core.quotePath=false']
  const { stdout, cut } = await git(
    [...literally, 'diff', '--patch', ...diffOptions, from, head, '--', ...wanted],
    { outputLimitBytes: maxPatchBytes },
  )
  const patches = splitPatch(stdout)
  const hunks: Record<string, string> = {}
  let room = maxHunkCharacters
  for (const patch of cut ? patches.slice(0, -1) : patches) {
    const text = patch.toString()
    const path = /^\+\+\+ b\/(.*?)\t?$/m.exec(text)?.[1] ?? /^--- a\/(.*?)\t?$/m.exec(text)?.[1]
    const start = text.indexOf('\n@@ ')
    if (path === undefined || start === -1) continue
    const rows = text.slice(start + 1).replaceAll(/^(?!@@ )([ +-]).*$/gm, '$1')
    room -= rows.length
    if (room >= 0) hunks[path] = rows
  }
  return hunks
}
