import { type Git, GitFailed, type GitOptions } from '../../workspace/git.ts'
import { DeliveryError } from '../delivery-error.ts'

/** `merge-tree --write-tree`, which merges without a worktree. */
const oldestMerging = '2.38'

/**
 * The change of a commit as a commit on another head, the same again for each attempt: `head` itself where it has
 * the change already. Throws `DeliveryError` where the two do not merge.
 */
export const placeOnHead = async (
  git: Git,
  at: GitOptions,
  commit: string,
  head: string,
  branch: string,
): Promise<string> => {
  const read = async (args: readonly string[], input = '') =>
    String((await git(args, { ...at, input })).stdout).trim()
  const [parent = '', ...trees] = (
    await read([
      'rev-parse',
      `${commit}^`,
      `${commit}^^{tree}`,
      `${head}^{tree}`,
      `${commit}^{tree}`,
    ])
  ).split('\n')
  if (head === commit || head === parent) return commit
  const [baseTree = '', headTree = '', ownTree = ''] = trees
  // The parent of the change is the base, wherever the branch began.
  const base = await read(['commit-tree', baseTree, '-m', 'base'])
  const ours = await read(['commit-tree', headTree, '-p', base, '-m', 'ours'])
  const theirs = await read(['commit-tree', ownTree, '-p', base, '-m', 'theirs'])
  const merged = await read(['merge-tree', '--write-tree', ours, theirs]).catch(
    (error: unknown) => {
      throw error instanceof GitFailed ? toMergeError(error.message, branch) : error
    },
  )
  if (merged === headTree) return head
  const text = await read(['cat-file', 'commit', commit])
  const moved = text
    .replace(/^tree .*$/m, `tree ${merged}`)
    .replace(/^parent .*$/m, `parent ${head}`)
  return read(['hash-object', '-t', 'commit', '-w', '--stdin'], `${moved}\n`)
}

const toMergeError = (said: string, branch: string): DeliveryError => {
  if (/usage:|unknown option/i.test(said))
    return new DeliveryError('permanent', `git is too old to add a commit to ${branch}`, {
      hint: `install git ${oldestMerging} or newer`,
    })
  // Git says nothing of a conflict there.
  if (said !== '')
    return new DeliveryError('permanent', `the change cannot be merged into ${branch}: git failed`)
  return new DeliveryError(
    'permanent',
    `${branch} has other commits than the agent saw, and the change does not merge with them`,
    { hint: 'merge or close its pull request, then run the event again' },
  )
}
