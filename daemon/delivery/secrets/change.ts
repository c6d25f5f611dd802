import { existsSync } from 'node:fs'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Git } from '../../workspace/git.ts'

/** What a commit would publish: its message, the names of its files, and the lines that it adds to them. */
export type ChangeTexts = {
  readonly message: string
  /** Those of files that are there after it, one a line. */
  readonly names: string
  readonly files: readonly AddedLines[]
}

export type AddedLines = {
  readonly name: string
  readonly text: string
  /** The number in the file of each line of `text`. */
  readonly numbers: readonly number[]
}

const maxBytes = 64 * 1024 * 1024

/**
 * Reads a commit of a mirror; undefined where it is no longer there, so that no target can publish it. Throws
 * `workspace-failed` where it adds more than can be searched. Bytes are characters (latin1) where a text is not
 * UTF-8.
 */
export const readChangeTexts = async (
  git: Git,
  { gitDir, ref }: { readonly gitDir: string; readonly ref: string },
  signal: AbortSignal,
): Promise<ChangeTexts | undefined> => {
  const at = { cwd: gitDir, gitDir, signal, outputLimitBytes: maxBytes }
  const read = async (args: readonly string[]): Promise<Buffer> => {
    const { stdout, cut } = await git(args, at)
    if (!cut) return stdout
    throw new DoorwardError(
      'workspace-failed',
      `the change is larger than ${maxBytes / 1024 / 1024} MB, and is not searched for secrets`,
      { hint: 'ask for a smaller change: nothing was sent' },
    )
  }
  const isThere = existsSync(gitDir)
    ? await read(['rev-parse', '--quiet', '--verify', `${ref}^{commit}`]).catch(() => undefined)
    : undefined
  if (!isThere) return undefined
  // What a file loses is not published by it.
  const between = ['--no-renames', '--diff-filter=d', '--ignore-submodules=none', `${ref}^`, ref]
  const message = await read(['log', '-1', '--format=%B', ref, '--'])
  const names = await read(['diff-tree', '-r', '-z', '--name-only', ...between])
  const patch = await read([
    'diff-tree',
    '-r',
    '-p',
    '--unified=0',
    // Files with zero bytes are searched too.
    '--text',
    '--no-color',
    '--no-ext-diff',
    '--no-textconv',
    '--src-prefix=a/',
    '--dst-prefix=b/',
    ...between,
  ])
  return {
    message: toText(message),
    names: toText(names).replaceAll('\0', '\n'),
    files: parsePatch(patch),
  }
}

const toText = (bytes: Buffer): string => {
  const text = bytes.toString()
  return text.includes('\ufffd') ? bytes.toString('latin1') : text
}

type OpenFile = { name: string; lines: Buffer[]; numbers: number[] }

const newline = 0x0a

/** The added lines of a patch without context. Its counts say what is a line of a file, whatever that looks like. */
export const parsePatch = (patch: Buffer): AddedLines[] => {
  const files: OpenFile[] = []
  let file: OpenFile = { name: '', lines: [], numbers: [] }
  let [removed, added, number] = [0, 0, 0]
  for (let start = 0; start < patch.length;) {
    const next = patch.indexOf(newline, start)
    const end = next === -1 ? patch.length : next
    const line = patch.subarray(start, end)
    start = end + 1
    const mark = line[0]
    if (removed > 0 && mark === 0x2d) removed -= 1
    else if (added > 0 && mark === 0x2b) {
      file.lines.push(line.subarray(1))
      file.numbers.push(number)
      number += 1
      added -= 1
    } else if (mark === 0x40 && removed + added === 0) {
      const [, less = '1', first = '1', more = '1'] =
        /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line.subarray(0, 100).toString()) ?? []
      ;[removed, added, number] = [Number(less), Number(more), Number(first)]
    } else if (mark === 0x2b && removed + added === 0) {
      file = { name: toName(line.toString()), lines: [], numbers: [] }
      files.push(file)
    }
  }
  return files.map(({ name, lines, numbers }) => ({
    name,
    numbers,
    text: toText(Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))),
  }))
}

/** `+++ b/<path>`; git quotes a path with special characters as C does. */
const toName = (header: string): string => {
  const path = header.slice('+++ '.length).replace(/\t$/, '')
  if (!path.startsWith('"')) return path.replace(/^b\//, '')
  const bytes = path
    .slice(1, -1)
    .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
      /^\d/.test(code) ? String.fromCharCode(Number.parseInt(code, 8)) : (special[code] ?? code),
    )
  return Buffer.from(bytes, 'latin1').toString().replace(/^b\//, '')
}

const special: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }
