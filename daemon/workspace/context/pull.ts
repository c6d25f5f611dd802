import { DoorwardError } from '../../../shared/errors.ts'
import { textAt } from '../../util/payload-path.ts'
import { isHash, withCommits, type WorkspaceRequest } from '../request.ts'
import type { AskGithub } from './github.ts'

/**
 * Asks GitHub for the commits of the pull request on which somebody has commented: once for a run, which keeps to
 * them whatever is pushed meanwhile. Throws `workspace-…`, or why there is no token.
 */
export const askCommits = async (
  request: WorkspaceRequest,
  askGithub: AskGithub,
  signal: AbortSignal,
): Promise<WorkspaceRequest> => {
  const { asks: number } = request
  if (number === undefined) return request
  // docs.github.com/rest/pulls/pulls#get-a-pull-request
  const pull = await askGithub(request, signal, async (github) => github.get(`/pulls/${number}`))
  const [head = '', base = ''] = [textAt(pull, 'head', 'sha'), textAt(pull, 'base', 'sha')]
  if (isHash(head) && isHash(base)) return withCommits(request, { head, base })
  throw new DoorwardError(
    'workspace-ref-not-found',
    `github knows no commits of pull request ${number} of ${request.repo}`,
    { hint: 'it was deleted, or the login may not see it' },
  )
}
