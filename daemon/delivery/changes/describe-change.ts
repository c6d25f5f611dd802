import { toPlainText } from '../../../shared/text.ts'
import type { Git } from '../../workspace/git.ts'
import { DeliveryError } from '../delivery-error.ts'

const maxListed = 100

/**
 * A commit in words: its message, the files with their lines, and its tree, which stands for every byte of them.
 * Throws `DeliveryError` where it is no longer there.
 */
export const describeChange = async (
  git: Git,
  { gitDir, ref }: { readonly gitDir: string; readonly ref: string },
): Promise<string> => {
  const read = async (args: readonly string[]) => {
    const { signal } = new AbortController()
    const { stdout } = await git(args, { cwd: gitDir, gitDir, signal })
    return stdout.toString().trim()
  }
  try {
    const tree = await read(['rev-parse', '--verify', `${ref}^{tree}`])
    const parent = await read(['rev-parse', '--verify', `${ref}^`])
    const message = await read(['show', '--no-patch', '--format=%B', ref])
    const format = ['--no-renames', `--stat=100,80,${maxListed}`]
    const stat = await read(['diff-tree', ...format, `${ref}^`, ref])
    return toPlainText(`commit: ${message}\n\n${stat}\n\ntree ${tree}, on ${parent}`)
  } catch (error) {
    throw new DeliveryError('permanent', 'the change is no longer in the workspace', {
      cause: error,
    })
  }
}
