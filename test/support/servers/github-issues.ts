import type { components } from '@octokit/openapi-types'

/*
 * Issues, labels and people of the repository acme/door, as GitHub's API has them (docs.github.com/rest/issues). It
 * makes labels that it does not know, and ignores people who cannot be assigned, as GitHub does.
 */

type Schemas = components['schemas']
type Account = Pick<Schemas['simple-user'], 'id' | 'login' | 'type'>

export type StoredIssue = {
  readonly number: number
  readonly title: string
  body: string
  state: 'open' | 'closed'
  user: Account
  readonly labels: string[]
  readonly assignees: string[]
  readonly pull_request?: object
}

export type GithubIssues = {
  readonly issues: StoredIssue[]
  /** Labels of the repository. */
  readonly labels: string[]
  /** Who may be assigned. */
  readonly people: string[]
}

type Asked = {
  readonly method: string
  /** Below the repository. */
  readonly route: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly account: Account
  readonly pageOf: (path: string) => string
}

/** #7 is a pull request, #3 an issue. */
export const createGithubIssues = (account: Account): GithubIssues => {
  const issue = { title: 'A title', body: '', state: 'open', user: account } as const
  return {
    issues: [
      { ...issue, number: 7, labels: [], assignees: [], pull_request: {} },
      { ...issue, number: 3, labels: [], assignees: [] },
    ],
    labels: ['bug', 'Docs', 'area/api', 'good first issue'],
    people: ['ada', 'Grace'],
  }
}

/** Undefined for a route of something else. */
export const answerIssues = (
  { issues, labels, people }: GithubIssues,
  { method, route, fields, account, pageOf }: Asked,
): readonly [number, unknown] | undefined => {
  const notFound = [404, { message: 'Not Found' }] as const
  const find = (list: readonly string[], name: string) =>
    list.find((one) => one.toLowerCase() === name.toLowerCase())
  const show = ({ number, ...issue }: StoredIssue) => ({
    ...issue,
    number,
    html_url: pageOf(`issues/${number}`),
    labels: issue.labels.map((name) => ({ name })),
    assignees: issue.assignees.map((login) => ({ login })),
  })
  const addLabels = (issue: StoredIssue, names: readonly string[]) => {
    for (const name of names) {
      if (find(labels, name) === undefined) labels.push(name)
      if (find(issue.labels, name) === undefined) issue.labels.push(find(labels, name) ?? name)
    }
  }
  const [, label] = /^\/labels\/([^/]+)$/.exec(route) ?? []
  if (label !== undefined) {
    const name = find(labels, decodeURIComponent(label))
    return name === undefined ? notFound : [200, { name }]
  }
  if (route === '/issues' && method === 'GET') return [200, issues.map(show).toReversed()]
  if (route === '/issues') {
    const { title = '', body = '', labels: names = [], ...rest } = fields
    if (Object.keys(rest).length > 0) throw new Error('GitHub knows no such field of an issue')
    if (String(title).length > 256)
      return [422, { message: 'title is too long (maximum is 256 characters)' }]
    const number = Math.max(...issues.map((one) => one.number)) + 5
    const made: StoredIssue = {
      number,
      title: String(title),
      body: String(body),
      state: 'open',
      user: account,
      labels: [],
      assignees: [],
    }
    addLabels(made, names as string[])
    issues.push(made)
    return [201, show(made)]
  }
  const [, number, list] = /^\/issues\/(\d+)(?:\/(labels|assignees))?$/.exec(route) ?? []
  const issue = issues.find((one) => String(one.number) === number)
  if (number === undefined) return undefined
  if (!issue) return notFound
  if (list === 'labels') {
    addLabels(issue, fields['labels'] as string[])
    return [200, show(issue).labels]
  }
  if (list === 'assignees') {
    for (const name of fields['assignees'] as string[]) {
      const person = find(people, name)
      if (person !== undefined && !issue.assignees.includes(person)) issue.assignees.push(person)
    }
    return [201, show(issue)]
  }
  if (method === 'PATCH') issue.state = fields['state'] as 'closed'
  return [200, show(issue)]
}
