/*
 * Issues, labels and people of the project acme/tools/door, as GitLab's API has them (docs.gitlab.com/api/issues). It
 * makes labels that it does not know, and keeps one assignee, as GitLab does in its free tier.
 */

type Item = {
  readonly iid: number
  readonly title: string
  readonly description: string
  state: 'opened' | 'closed'
  author: { id: number }
  readonly labels: string[]
  assignees: { id: number }[]
}

export type GitlabIssues = {
  readonly issues: Item[]
  readonly merge: Item
  readonly labels: string[]
  readonly users: readonly { readonly id: number; readonly username: string }[]
}

export const createGitlabIssues = (authorId: number): GitlabIssues => {
  const item = (iid: number): Item => ({
    iid,
    title: 'A title',
    description: '',
    state: 'opened',
    author: { id: authorId },
    labels: [],
    assignees: [],
  })
  return {
    issues: [item(3)],
    merge: item(7),
    labels: ['bug', 'Docs', 'area::api'],
    users: [
      { id: 5, username: 'ada' },
      { id: 6, username: 'Grace' },
    ],
  }
}

type Asked = {
  readonly method: string
  readonly url: URL
  readonly fields: Readonly<Record<string, unknown>>
  readonly authorId: number
  readonly origin: string
}

/** Undefined for a route of something else. */
export const answerGitlabIssues = (
  { issues, merge, labels, users }: GitlabIssues,
  { method, url, fields, authorId, origin }: Asked,
): readonly [number, unknown] | undefined => {
  const notFound = [404, { message: '404 Not found' }] as const
  const page = (item: Item) => ({
    ...item,
    web_url: `${origin}/acme/tools/door/-/issues/${item.iid}`,
  })
  if (url.pathname === '/api/v4/users') {
    const name = url.searchParams.get('username')?.toLowerCase()
    return [200, users.filter(({ username }) => username.toLowerCase() === name)]
  }
  const project = '/api/v4/projects/acme%2Ftools%2Fdoor'
  if (!url.pathname.startsWith(project)) return undefined
  const route = url.pathname.slice(project.length)
  const [, label] = /^\/labels\/([^/]+)$/.exec(route) ?? []
  if (label !== undefined)
    return labels.includes(decodeURIComponent(label)) ? [200, { name: label }] : notFound
  if (route === '/issues' && method === 'GET') return [200, issues.map(page)]
  if (route === '/issues') {
    const { title, description = '', labels: names = '', ...rest } = fields
    if (Object.keys(rest).length > 0) throw new Error('GitLab knows no such field of an issue')
    const made: Item = {
      iid: Math.max(...issues.map(({ iid }) => iid)) + 5,
      title: String(title),
      description: String(description),
      state: 'opened',
      author: { id: authorId },
      labels: String(names).split(',').filter(Boolean),
      assignees: [],
    }
    issues.push(made)
    return [201, page(made)]
  }
  const [, kind, iid] = /^\/(issues|merge_requests)\/(\d+)$/.exec(route) ?? []
  if (kind === undefined) return undefined
  const item =
    kind === 'issues' ? issues.find((one) => String(one.iid) === iid) : iid === '7' && merge
  if (!item) return notFound
  // The other documents of a merge request are those of its own server.
  if (method === 'GET') return kind === 'issues' ? [200, page(item)] : undefined
  const { add_labels: added, assignee_ids: ids, state_event: event, ...rest } = fields
  if (Object.keys(rest).length > 0) throw new Error('GitLab knows no such field')
  if (added !== undefined)
    for (const name of String(added).split(',')) {
      if (!labels.includes(name)) labels.push(name)
      if (!item.labels.includes(name)) item.labels.push(name)
    }
  if (ids !== undefined) item.assignees = (ids as number[]).slice(0, 1).map((id) => ({ id }))
  if (event === 'close') item.state = 'closed'
  return [200, page(item)]
}
