import { getProviderName } from '../../../shared/config/name-forms.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { openRequest } from '../../../shared/network/outgoing.ts'
import { DeliveryError } from '../../delivery/delivery-error.ts'
import {
  createGithubApi,
  findListed,
  type GithubRequest,
  type Hints,
} from '../../delivery/targets/github/github-api.ts'
import type { Tokens } from '../../oauth/dependencies.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import { textAt } from '../../util/payload-path.ts'
import {
  findRepository,
  isHash,
  toRepositoryName,
  withCommits,
  type WorkspaceRequest,
} from '../request.ts'

/*
 * Comments and logs of a change, by GitHub's API and the login of the workspace.
 */

export type GithubReader = {
  /** `owner/name` */
  readonly repository: string
  /** All items of a list below `repos/<owner>/<name>`, as far as ten pages. */
  readonly list: (path: string, field?: string) => Promise<readonly unknown[]>
  /** One document; undefined when it does not exist. */
  readonly get: (path: string) => Promise<Readonly<Record<string, unknown>> | undefined>
  /** The end of a text at which a redirect points; undefined when it does not exist. */
  readonly download: (path: string, limitBytes: number) => Promise<string | undefined>
}

/** Calls with requests for one repository. Throws `workspace-…`, or why there is no token. */
export type AskGithub = <Value>(
  request: WorkspaceRequest,
  signal: AbortSignal,
  call: (github: GithubReader) => Promise<Value>,
) => Promise<Value>

/** Comments, reviews, and the logs of failed jobs. */
const readOnly = {
  contents: 'read',
  pull_requests: 'read',
  issues: 'read',
  checks: 'read',
  actions: 'read',
} as const

const timeoutMs = 30_000
const missing = 'the login may not see it: at github a private repository needs the scope repo'
const hints: Hints = { 403: missing, 404: missing }

export const createAskGithub =
  (gateway: Gateway, env: NodeJS.ProcessEnv, access: Tokens['access']): AskGithub =>
  async (request, signal, call) => {
    const { name, apiUrl, provider, tokenEnv } = findApi(request, gateway)
    const token = { target: 'github', tokenEnv, provider, env, access }
    const grant = { repository: name, permissions: readOnly }
    const attempt = { signal, timeoutMs, mailTimeoutMs: timeoutMs, mayHaveArrived: false }
    try {
      return await createGithubApi(apiUrl, token)({ attempt, hints, grant }, async (api) =>
        call({ repository: name, ...toReader(api, `/repos/${name}`, signal) }),
      )
    } catch (error) {
      if (!(error instanceof DeliveryError) || error.code !== 'delivery-failed') throw error
      throw new DoorwardError(
        'workspace-failed',
        `the context of ${request.repo}: ${error.message}`,
        {
          cause: error,
          hint: error.hint ?? 'doorward events retry runs it again',
        },
      )
    }
  }

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

/** The API of the host of a repository, and the login for it. */
export const findApi = (
  request: Pick<WorkspaceRequest, 'repo' | 'fixed' | 'login'>,
  { providers, targets, ...gateway }: Gateway,
) => {
  const { url, login } = findRepository(request, { providers, targets, ...gateway })
  const name = login && toRepositoryName(url)
  const provider = login && getProviderName(login.name)
  const own = provider === 'github' ? targets.github : undefined
  const apiUrl = own ? own.api_url : providers[provider ?? '']?.api_url
  if (!login || name === undefined || (!own && apiUrl === undefined))
    throw new DoorwardError(
      'workspace-invalid',
      `comments, reviews and failed-logs are read from GitHub, and ${request.repo} is not there`,
      {
        hint: 'write owner/name into repo, or api_url for its provider: doorward config edit gateway',
      },
    )
  const isDefault = own !== undefined && !login.isChosen
  return {
    name,
    apiUrl,
    provider: isDefault ? (own.login ?? login.name) : login.name,
    tokenEnv: isDefault ? own.token_env : undefined,
  }
}

const toReader = (
  api: GithubRequest,
  base: string,
  signal: AbortSignal,
): Omit<GithubReader, 'repository'> => ({
  list: async (path, field) => {
    const items: unknown[] = []
    const list = { path: `${base}${path}`, what: 'list', ...(field !== undefined && { field }) }
    await findListed(api, list, (item) => {
      items.push(item)
      return false
    })
    return items
  },
  get: async (path) => {
    const { status, json } = await api(`${base}${path}`, { handles: [404] })
    return status === 404 ? undefined : json
  },
  download: async (path, limitBytes) => {
    // A log that was deleted is 404 or 410.
    const { status, headers } = await api(`${base}${path}`, { handles: [302, 404, 410] })
    const { location } = headers
    if (status !== 302 || location === undefined || !URL.canParse(location)) return undefined
    return readEnd(new URL(location), limitBytes, signal)
  },
})

/** The last bytes of what is at a signed address, which needs no token. */
const readEnd = async (url: URL, limitBytes: number, signal: AbortSignal): Promise<string> => {
  try {
    return await withTimeLimit(timeoutMs, signal, async (limit) => {
      const response = await openRequest(url, { method: 'GET', signal: limit })
      if (response.statusCode !== 200) {
        response.destroy()
        throw new DeliveryError('retryable', `the log cannot be read (${response.statusCode})`)
      }
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of response as AsyncIterable<Buffer>) {
        chunks.push(chunk)
        size += chunk.length
        while (size - (chunks[0]?.length ?? 0) >= limitBytes) size -= chunks.shift()?.length ?? 0
      }
      return Buffer.concat(chunks).subarray(-limitBytes).toString()
    })
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    // The address has a signature, so nothing of it is in the message.
    throw new DeliveryError('retryable', 'the log cannot be read: its server does not answer', {
      cause: error,
    })
  }
}
