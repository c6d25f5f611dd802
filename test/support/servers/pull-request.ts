import { readFile } from 'node:fs/promises'
import { packageFolder } from '../../../shared/version.ts'
import { type GithubServer, startGithubServer } from './github-server.ts'
import { type GitFiles, type GitServer, startGitServer } from './git-server.ts'

/** The repository acme/door behind a token, and GitHub's API, with the pull request #7. */
export type PullRequestScene = {
  readonly github: GithubServer
  readonly git: GitServer
  /** gateway.yaml of a daemon whose login of GitHub is for these. */
  readonly gateway: string
  /** Pushes files to the pull request; returns what GitHub then delivers. */
  readonly push: (files: GitFiles, action: 'opened' | 'synchronize') => Promise<string>
  readonly close: () => void
}

/** Starts them. `token` is that of the login; these files are on the branch main. `apps` is the part of the API that is of bots. */
export const startPullRequest = async (
  token: string | ((given: string) => boolean),
  files: GitFiles = {},
  apps?: { readonly origin: string },
): Promise<PullRequestScene> => {
  const github = await startGithubServer()
  const toApi = (path: string): string =>
    apps && /\/(app|installation)(\/|\?|$)/.test(path) ? apps.origin : github.origin
  const git = await startGitServer(token, 'acme/door', toApi)
  const base = await git.push(files)
  const sample = new URL('assets/samples/github/pull_request.opened.json', packageFolder)
  const text = await readFile(sample, 'utf8')
  return {
    github,
    git,
    gateway: `
oauth: { callback_port: 0 }
providers: { github: { token_endpoint: "${git.origin}/token" } }
targets: { github: { api_url: "${git.origin}/api/v3" } }
`,
    push: async (files, action) => {
      // A fork's branch is not in the repository: only this ref is.
      const head = await git.push(files, { to: 'refs/pull/7/head' })
      github.pull.head = head
      github.pull.base = base
      const names = await git.git('diff', '--name-only', base, head)
      github.pull.files.length = 0
      for (const filename of names.split('\n')) {
        const patch = await git.git('diff', base, head, '--', filename)
        const hunks = patch.slice(patch.indexOf('@@'))
        github.pull.files.push({ filename, status: 'modified', patch: hunks })
      }
      const payload = JSON.parse(text) as {
        number: number
        action: string
        repository: { full_name: string }
        pull_request: { number: number; head: { sha: string }; base: { sha: string } }
      }
      payload.action = action
      payload.number = 7
      payload.repository.full_name = 'acme/door'
      Object.assign(payload.pull_request, { number: 7, draft: false })
      payload.pull_request.head.sha = head
      payload.pull_request.base.sha = base
      return JSON.stringify(payload)
    },
    close: () => {
      git.close()
      github.close()
    },
  }
}

/** An answer with one comment on a line. */
export const reviewOf = (text: string, comment: { path: string; line: number; body: string }) => {
  const comments = [{ side: 'RIGHT', ...comment }]
  return `${text}\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\`\n`
}
