import type { components } from '@octokit/openapi-types'

/*
 * Check runs of GitHub, and who has which role, as an App sees them that is installed in a repository.
 */

type Schemas = components['schemas']

/** A check run, as it was made and changed since. */
export type StandInCheck = Pick<
  Schemas['check-run'],
  'id' | 'external_id' | 'name' | 'head_sha'
> & {
  readonly status: string
  readonly conclusion?: string
  readonly output?: { readonly title: string; readonly summary: string }
  readonly actions?: readonly Action[]
  /** All that it was, one after the other. */
  readonly states: readonly string[]
}

type Action = { readonly label: string; readonly description: string; readonly identifier: string }

/** The head of each pull request. */
export const headOfPulls = 'b'.repeat(40)

export class StandInChecks {
  readonly checks: StandInCheck[] = []
  /** The role of each person; others may read. */
  readonly roles = new Map<string, string>()

  /** `asked` is the method and the path below the repository. */
  answer(
    asked: string,
    permissions: Readonly<Record<string, string>>,
    fields: Readonly<Record<string, unknown>>,
  ): readonly [number, unknown] {
    const [, login] = /^GET \/collaborators\/([^/]+)\/permission$/.exec(asked) ?? []
    if (login !== undefined) {
      const role = this.roles.get(login) ?? 'read'
      return [200, { permission: role, role_name: role }]
    }
    if (/^GET \/pulls\/\d+$/.test(asked) && permissions['pull_requests'] !== undefined)
      return [200, { head: { sha: headOfPulls } }]
    if (/^POST \/issues\/[\w/]+\/reactions$/.test(asked)) return [201, { id: 41 }]
    if (/^DELETE \/issues\/[\w/]+\/reactions\/41$/.test(asked)) return [204, {}]
    const [, id] = /^PATCH \/check-runs\/(\d+)$/.exec(asked) ?? []
    if (id === undefined && asked !== 'POST /check-runs') return [404, { message: 'Not Found' }]
    if (permissions['checks'] !== 'write')
      return [403, { message: 'Resource not accessible by integration' }]
    return this.#change(id, fields)
  }

  /** What GitHub sends when somebody presses a button of a check; without an identifier GitHub's own. */
  pressed(id: number, login: string, identifier?: string): object {
    const { external_id, output } = this.checks.find((one) => one.id === id) ?? {}
    return {
      action: identifier === undefined ? 'rerequested' : 'requested_action',
      check_run: { id, external_id, output: { summary: output?.summary ?? null } },
      ...(identifier !== undefined && { requested_action: { identifier } }),
      repository: { full_name: 'acme/shop' },
      sender: { login, type: 'User' },
    }
  }

  #change(id: string | undefined, given: Partial<StandInCheck>): readonly [number, unknown] {
    const found = this.checks.findIndex((one) => String(one.id) === id)
    if (id !== undefined && found === -1) return [404, { message: 'Not Found' }]
    const place = id === undefined ? this.checks.length : found
    const before = this.checks[place]
    const tooLong = given.actions?.some(
      ({ label, description, identifier }) =>
        label.length > 20 || description.length > 40 || identifier.length > 20,
    )
    const hasNoEnd = given.status === 'completed' && given.conclusion === undefined
    if (hasNoEnd || tooLong || !(given.head_sha ?? before?.head_sha))
      return [422, { message: 'Invalid request.' }]
    const states = [...(before?.states ?? []), given.conclusion ?? given.status ?? '']
    const check = { id: 300 + place, ...before, ...given, states } as StandInCheck
    this.checks[place] = check
    return [id === undefined ? 201 : 200, check]
  }
}
