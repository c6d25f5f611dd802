import { withoutPrefix } from '../../delivery/format/place-comments.ts'
import type { Workspace } from '../workspaces.ts'
import { diffOptions, splitPatch } from './changes.ts'

const maxPatchBytes = 32 * 1024 * 1024
/** Kept in memory with the event. */
const maxCharacters = 256 * 1024

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
  let room = maxCharacters
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
