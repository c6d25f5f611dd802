import type { Gateway } from '../../shared/config/schema.ts'
import { type Role, roles } from '../../shared/config/who.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { asReadOnly } from '../delivery/delivery-error.ts'
import type { Asking } from '../delivery/sender.ts'
import { createGithubApi } from '../delivery/targets/github/github-api.ts'
import { createGitlabRequest } from '../delivery/targets/gitlab/gitlab.ts'
import { withToken } from '../delivery/token.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { BoundedMap } from '../util/collections.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import type { RoleRequest, WhoRequest } from '../webhook/rules/who.ts'
import { findApi } from '../workspace/context/github.ts'

/*
 * The role of a person in a repository, as GitHub or GitLab knows it.
 */

/** Throws `not-allowed` where who started an event may not, or where that is not known. */
export type RequireRole = (who: WhoRequest) => Promise<void>

/** As high as `read` is 1; 0 for no role. */
type Rank = number
type AskRank = (request: RoleRequest, asking: Asking) => Promise<Rank>

const timeoutMs = 10_000
const cachedMs = 5 * 60_000
const maxCached = 1000

/** Events share an answer, so none of them ends the question. */
const toAsking = (): Asking => ({ signal: new AbortController().signal, timeoutMs })

const toRank = (role: Role): Rank => roles.indexOf(role) + 1

export const createRequireRole = (
  gateway: Gateway,
  env: NodeJS.ProcessEnv,
  access: Tokens['access'],
): RequireRole => {
  const known = new BoundedMap<string, { readonly rank: Promise<Rank>; readonly at: number }>(
    maxCached,
  )
  const ask = {
    github: createAskGithub(gateway, env, access),
    gitlab: createAskGitlab(gateway, env, access),
  }
  return async (who) => {
    if ('refused' in who) throw notAllowed(who.refused)
    const { provider, repository, person, personId, atLeast, login } = who
    const key = JSON.stringify([provider, repository, person, personId, login])
    const before = known.get(key)
    const isNew = !before || performance.now() - before.at >= cachedMs
    const asked = isNew ? ask[provider](who, toAsking()) : before.rank
    if (isNew) known.set(key, { rank: asked, at: performance.now() })
    const name = toPlainLine(person)
    const place = toPlainLine(repository)
    const rank = await asked.catch((error: unknown) => {
      // What is not known is asked again.
      if (known.get(key)?.rank === asked) known.delete(key)
      if (!(error instanceof DoorwardError)) throw error
      const way = error.hint === undefined ? '' : ` (${error.hint})`
      throw notAllowed(
        `it is not known whether ${name} has the role ${atLeast} in ${place}: ${error.message}${way}`,
      )
    })
    if (rank < toRank(atLeast))
      throw notAllowed(
        `${name} has ${rank === 0 ? 'no role' : `the role ${roles[rank - 1]}`} in ${place}, and who is ${atLeast}`,
      )
  }
}

const notAllowed = (why: string) => new DoorwardError('not-allowed', why)

/** docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user */
const createAskGithub = (
  gateway: Gateway,
  env: NodeJS.ProcessEnv,
  access: Tokens['access'],
): AskRank => {
  const hints = { 403: mayNotAsk.github, 404: mayNotAsk.github }
  return async ({ repository, person, login }, attempt) => {
    const { name, apiUrl, provider, tokenEnv } = findApi(
      { repo: repository, fixed: 'nothing', login },
      gateway,
    )
    const token = { target: 'github', tokenEnv, provider, env, access }
    const grant = { repository: name, permissions: { metadata: 'read' } } as const
    const { json } = await createGithubApi(apiUrl, token)(
      { attempt, hints, grant },
      async (request) =>
        asReadOnly(
          request(`/repos/${name}/collaborators/${encodeURIComponent(person)}/permission`),
        ),
    )
    // A role of an organization's own has one of the others beneath it.
    const found = [textAt(json, 'role_name'), textAt(json, 'permission')]
    const role = found.find((one) => one === 'none' || isRole(one))
    if (role === undefined) throw new DoorwardError('source-failed', 'github named no role')
    return isRole(role) ? toRank(role) : 0
  }
}

const isRole = (text: string | undefined): text is Role =>
  (roles as readonly (string | undefined)[]).includes(text)

/** docs.gitlab.com/api/project_members/#get-project-member-including-inherited-and-invited-members */
const createAskGitlab = (
  { targets: { gitlab } }: Gateway,
  env: NodeJS.ProcessEnv,
  access: Tokens['access'],
): AskRank => {
  const { api_url: apiUrl = 'https://gitlab.com/api/v4', token_env: tokenEnv, login } = gitlab
  const token = { target: 'gitlab', tokenEnv, provider: login ?? 'gitlab', env, access }
  return async ({ repository, personId }, attempt) => {
    if (personId === undefined)
      throw new DoorwardError('source-failed', 'the event has no number of the user')
    const url = `${apiUrl}/projects/${encodeURIComponent(repository)}/members/all/${personId}`
    const { status, json } = await withToken(token, async (accessToken) =>
      asReadOnly(createGitlabRequest(accessToken, attempt)(url, undefined, [403, 404])),
    )
    if (status >= 400)
      throw new DoorwardError('source-failed', `gitlab answered ${status}`, {
        hint: mayNotAsk.gitlab,
      })
    const level = valueAt(json, ['access_level'])
    if (typeof level !== 'number')
      throw new DoorwardError('source-failed', 'gitlab named no access level')
    const isActive = (textAt(json, 'state') ?? 'active') === 'active'
    return isActive ? levels.filter((least) => level >= least).length : 0
  }
}

/** Guest, reporter, developer, maintainer and owner, for each of our roles. */
const levels = [10, 20, 30, 40, 50]

const mayNotAsk = {
  github:
    'the login may not ask that: it needs to be able to push there (scope repo), or be a bot that is installed there',
  gitlab: 'there is no such member, or the token may not see it (scope read_api or api)',
}
