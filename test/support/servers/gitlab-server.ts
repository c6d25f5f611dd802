import { answerGitlabIssues, createGitlabIssues, type GitlabIssues } from './gitlab-issues.ts'
import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitLab's API for the merge request !7 of acme/tools/door (docs.gitlab.com/api/discussions): it takes a position
 * only with both paths and all numbers of its line, as GitLab does.
 */

type Position = Readonly<Record<string, string | number>>

type Note = {
  readonly id: number
  body: string
  position?: Position
  readonly created_at: string
  author: { id: number }
  resolvable: boolean
  resolved: boolean
}

const account = { id: 42, username: 'door' }

export type GitlabServer = Pick<TargetServer, 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  /** Its issues, labels and people. */
  readonly tracker: GitlabIssues
  /** The newest first; each is the first of its discussion. */
  readonly notes: Note[]
  readonly files: { new_path: string; old_path: string; diff: string }[]
  /** Lines that have a position, by path, old number and new number. */
  readonly lines: Set<string>
}

export const headOfMerge = 'c'.repeat(40)

export const startGitlabServer = async (): Promise<GitlabServer> => {
  const notes: GitlabServer['notes'] = []
  const files: GitlabServer['files'] = []
  const lines: GitlabServer['lines'] = new Set()
  const tracker = createGitlabIssues(account.id)
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
    const id = notes.length + 1
    const created_at = new Date().toISOString()
    const resolvable = position !== undefined
    const place = resolvable ? { position } : {}
    notes.unshift({ id, body, ...place, created_at, author: account, resolvable, resolved: false })
    return [201, position ? { id: nameOf(id), notes: [{ id }] } : { id }]
  }

  /** Only who wrote a note may edit it. */
  const change = (path: string, { fields }: Recorded): readonly [number, unknown] => {
    const [, list, name = ''] = /^\/(notes|discussions)\/(\w+)$/.exec(path) ?? []
    const note = notes.find(({ id }) => name === (list === 'notes' ? String(id) : nameOf(id)))
    if (!note) return [404, { message: '404 Not found' }]
    if (list === 'discussions') note.resolved = fields['resolved'] === true
    else if (note.author.id !== account.id) return [403, { message: '403 Forbidden' }]
    else note.body = String(fields['body'])
    return [200, {}]
  }

  const answer = (recorded: Recorded): readonly [number, unknown] => {
    const { pathname, searchParams } = new URL(recorded.path, 'http://loopback')
    const merge = '/api/v4/projects/acme%2Ftools%2Fdoor/merge_requests/7'
    const [size, page] = ['per_page', 'page'].map((name) => Number(searchParams.get(name)))
    const list = (items: readonly unknown[]) =>
      [200, items.slice(((page ?? 1) - 1) * (size ?? 20), (page ?? 1) * (size ?? 20))] as const
    if (pathname === '/api/v4/user') return [200, account]
    const url = new URL(recorded.path, `http://${recorded.headers.host ?? 'loopback'}`)
    const { method, fields } = recorded
    const asked = { method, url, fields, authorId: account.id, origin: url.origin }
    const ofIssue = answerGitlabIssues(tracker, asked)
    if (ofIssue) return ofIssue
    if (recorded.method === 'PUT') return change(pathname.replace(merge, ''), recorded)
    const [, thread] = /\/discussions\/([0-9a-f]+)\/notes$/.exec(pathname) ?? []
    if (thread !== undefined && notes.some(({ id }) => nameOf(id) === thread)) return take(recorded)
    switch (`${recorded.method} ${pathname.replace(merge, '')}`) {
      case 'GET ':
        return [200, { iid: 7, diff_refs: refs, assignees: tracker.merge.assignees }]
      case 'GET /discussions':
        return list(notes.toReversed().map((note) => ({ id: nameOf(note.id), notes: [note] })))
      case 'GET /diffs':
        return list(files)
      case 'GET /notes':
        return list(notes)
      case 'POST /notes':
      case 'POST /discussions':
      case 'POST /api/v4/projects/acme%2Ftools%2Fdoor/issues/3/notes':
        return take(recorded)
    }
    return [404, { message: '404 Not found' }]
  }

  const server = await startTargetServer((response, recorded, request) =>
    json(...answer(recorded))(response, recorded, request),
  )
  const { requests, next, close, origin } = server
  return { requests, next, close, tracker, notes, files, lines, apiUrl: `${origin}/api/v4` }
}

/** The id of a discussion, by that of its first note. */
const nameOf = (id: number): string => String(id).padStart(40, 'f')
