import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitLab's API for the merge request !7 of acme/tools/door (docs.gitlab.com/api/discussions): it takes a position
 * only with both paths and all numbers of its line, as GitLab does.
 */

type Position = Readonly<Record<string, string | number>>

export type GitlabServer = Pick<TargetServer, 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  readonly notes: { readonly body: string; readonly position?: Position; created_at: string }[]
  readonly files: { new_path: string; old_path: string; diff: string }[]
  /** Lines that have a position, by path, old number and new number. */
  readonly lines: Set<string>
}

export const headOfMerge = 'c'.repeat(40)

export const startGitlabServer = async (): Promise<GitlabServer> => {
  const notes: GitlabServer['notes'] = []
  const files: GitlabServer['files'] = []
  const lines: GitlabServer['lines'] = new Set()
  const refs = { base_sha: 'a'.repeat(40), start_sha: 'b'.repeat(40), head_sha: headOfMerge }

  const take = ({ fields }: Recorded): readonly [number, unknown] => {
    const { body, position } = fields as { body: string; position?: Position }
    if (position) {
      const { position_type, old_path, new_path, old_line, new_line, ...rest } = position
      const isComplete = JSON.stringify(rest) === JSON.stringify(refs) && position_type === 'text'
      const known = lines.has(`${old_path} ${new_path} ${old_line ?? '-'} ${new_line ?? '-'}`)
      if (!isComplete || !known)
        return [400, { message: '400 Bad request - Note {:line_code=>["can\'t be blank"]}' }]
    }
    notes.unshift({ body, ...(position && { position }), created_at: new Date().toISOString() })
    const { length: id } = notes
    return [201, position ? { id: 'f'.repeat(40), notes: [{ id }] } : { id }]
  }

  const answer = (recorded: Recorded): readonly [number, unknown] => {
    const { pathname, searchParams } = new URL(recorded.path, 'http://loopback')
    const merge = '/api/v4/projects/acme%2Ftools%2Fdoor/merge_requests/7'
    const [size, page] = ['per_page', 'page'].map((name) => Number(searchParams.get(name)))
    const list = (items: readonly unknown[]) =>
      [200, items.slice(((page ?? 1) - 1) * (size ?? 20), (page ?? 1) * (size ?? 20))] as const
    switch (`${recorded.method} ${pathname.replace(merge, '')}`) {
      case 'GET ':
        return [200, { iid: 7, diff_refs: refs }]
      case 'GET /diffs':
        return list(files)
      case 'GET /notes':
        return list(notes)
      case 'POST /notes':
      case 'POST /discussions':
        return take(recorded)
    }
    return [404, { message: '404 Not found' }]
  }

  const server = await startTargetServer((response, recorded, request) =>
    json(...answer(recorded))(response, recorded, request),
  )
  const { requests, next, close, origin } = server
  return { requests, next, close, notes, files, lines, apiUrl: `${origin}/api/v4` }
}
