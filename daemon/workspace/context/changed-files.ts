import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { matchesPaths } from '../../../shared/filter/paths.ts'
import { asReadOnly, DeliveryError, TokenRefused } from '../../delivery/delivery-error.ts'
import { requestTarget, toStatusError } from '../../delivery/request.ts'
import { withToken } from '../../delivery/token.ts'
import type { Tokens } from '../../oauth/dependencies.ts'
import { textAt } from '../../util/payload-path.ts'
import type { ChangeRef, PathsRequest } from '../../webhook/rules/changes.ts'
import type { Workspace } from '../workspaces.ts'
import { listChangedPaths } from './changes.ts'
import type { AskGithub } from './github.ts'

/*
 * The files of a change, for `paths` of a rule, before its agent runs.
 */

/** The files of a pull or merge request by the sender's API; undefined where it lists not all of them. */
export type ListChange = (
  change: ChangeRef,
  signal: AbortSignal,
) => Promise<readonly string[] | undefined>

const perPage = 100
/** A longer list may be cut. */
const maxFiles = 1000
const timeoutMs = 30_000
const maxResponseBytes = 16 * 1024 * 1024

/** Throws `paths-unmatched` where no changed file is one of `paths`. */
export const requirePaths = async (
  paths: PathsRequest,
  workspace: Workspace | undefined,
  list: ListChange,
  signal: AbortSignal,
): Promise<void> => {
  const { change } = paths
  const files = change
    ? await list(change, signal)
    : workspace && (await listChangedPaths(workspace))
  if (!files || matchesPaths(paths, files)) return
  const count =
    files.length === 1 ? 'the changed file is not' : `none of ${files.length} changed files is`
  throw new DoorwardError('paths-unmatched', `${count} one of paths`)
}

export const createListChange =
  (
    gateway: Gateway,
    env: NodeJS.ProcessEnv,
    access: Tokens['access'],
    askGithub: AskGithub,
  ): ListChange =>
  async (change, signal) => {
    const files =
      change.provider === 'github'
        ? await listPullRequest(change, signal, askGithub)
        : await listMergeRequest(change, signal, gateway, { env, access })
    return files.length >= maxFiles ? undefined : files
  }

const listPullRequest = async (
  { repository, number }: ChangeRef,
  signal: AbortSignal,
  askGithub: AskGithub,
): Promise<string[]> => {
  const request = {
    repo: repository,
    fixed: 'nothing',
    ref: '',
    base: undefined,
    pull: undefined,
    login: undefined,
    access: 'read',
    depth: undefined,
  } as const
  const files = await askGithub(request, signal, async (github) =>
    github.list(`/pulls/${number}/files?`),
  )
  return namesOf(files, 'filename', 'previous_filename')
}

const namesOf = (files: readonly unknown[], ...fields: readonly string[]): string[] =>
  files.flatMap((file) => fields.flatMap((field) => textAt(file, field) ?? []))

/** docs.gitlab.com/api/merge_requests/#list-merge-request-diffs */
const listMergeRequest = async (
  { repository, number }: ChangeRef,
  signal: AbortSignal,
  { targets: { gitlab } }: Gateway,
  { env, access }: { readonly env: NodeJS.ProcessEnv; readonly access: Tokens['access'] },
): Promise<string[]> => {
  const { api_url: apiUrl = 'https://gitlab.com/api/v4', token_env: tokenEnv, login } = gitlab
  const token = { target: 'gitlab', tokenEnv, provider: login ?? 'gitlab', env, access }
  const attempt = { signal, timeoutMs, mailTimeoutMs: timeoutMs, mayHaveArrived: false }
  const url = `${apiUrl}/projects/${encodeURIComponent(repository)}/merge_requests/${number}/diffs`
  const readPage = async (accessToken: string, page: number): Promise<readonly unknown[]> => {
    const to = new URL(`${url}?per_page=${perPage}&page=${page}`)
    const headers = { accept: 'application/json' }
    const options = { target: 'gitlab', token: accessToken, headers, maxResponseBytes, attempt }
    const response = await requestTarget(to, options)
    if (response.status === 401) throw new TokenRefused()
    const failure = toStatusError('gitlab', response, { hint: hints[response.status] })
    if (failure) throw failure
    const { json } = response
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'gitlab returned no diffs')
    return json as readonly unknown[]
  }
  try {
    return await withToken(token, async (accessToken) => {
      const files: string[] = []
      for (let page = 1; files.length < maxFiles; page += 1) {
        const items = await asReadOnly(readPage(accessToken, page))
        files.push(...new Set(namesOf(items, 'new_path', 'old_path')))
        if (items.length < perPage) break
      }
      return files
    })
  } catch (error) {
    if (!(error instanceof DeliveryError) || error.code !== 'delivery-failed') throw error
    throw new DoorwardError('workspace-failed', `the changed files: ${error.message}`, {
      cause: error,
      hint: error.hint ?? 'doorward events retry runs it again',
    })
  }
}

const hints: Readonly<Record<number, string>> = {
  403: 'the token may not read the merge request: it needs the scope read_api or api',
  404: 'there is no such merge request, or the token may not see it (scope read_api or api)',
}
