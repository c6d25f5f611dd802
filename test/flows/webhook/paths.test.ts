import assert from 'node:assert/strict'
import type { components } from '@octokit/openapi-types'
import type { EventDetail } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

type File = Pick<components['schemas']['diff-entry'], 'filename' | 'previous_filename'>

const secret = 'a secret of the tests'
/** What `storeLogin` stores. */
const token = 'of-before'

describe('a rule with paths', () => {
  let git: GitServer
  let api: TargetServer
  let daemon: RunningDaemon
  let base: string
  const files = new Map<string, readonly File[] | readonly object[]>()

  before(async () => {
    git = await startGitServer(token, 'acme/app')
    base = (await git.git('rev-parse', 'HEAD')).trim()
    api = await startTargetServer((response, recorded, request) => {
      const found = files.get(new URL(recorded.path, 'http://loopback').pathname)
      return json(found ? 200 : 404, found ?? {})(response, recorded, request)
    })
    const home = await temporaryHome({
      env: `HOOK_SECRET=${secret}\nGITLAB_TOKEN=a-token-of-gitlab\n`,
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { token_endpoint: "${git.origin}/token" } }
targets:
  github: { api_url: "${api.origin}" }
  gitlab: { api_url: "${api.origin}/api/v4", token_env: GITLAB_TOKEN }
`,
      webhooks: `
webhooks:
  - path: /a
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    paths: [services/api/**, '**/*.proto']
    paths_ignore: '**/*.md'
    max_runs: 50/day
  - path: /workspace
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    paths: [services/api/**]
    workspace: { repo: acme/app, ref: '{{event.head}}', base: '{{event.base}}' }
`,
    })
    await storeLogin(home, 'github', 'a refresh token')
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    git.close()
    api.close()
  })

  const run = async (path: string, payload: object): Promise<EventDetail> => {
    const body = JSON.stringify(payload)
    const headers = githubHeaders(body, secret, { 'x-github-event': 'any' })
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    return untilFinished(daemon, String(reply.json()['id']))
  }
  const endOf = async (path: string, payload: object) => {
    const { state, code, detail } = await run(path, payload)
    return state === 'done' ? state : [state, code, detail]
  }

  it('runs for a push whose commits change one of them', async () => {
    const push = (...modified: string[]) =>
      endOf('/a', { ref: 'refs/heads/main', commits: [{ added: [], removed: [], modified }] })
    assert.equal(await push('README.md', 'services/api/src/a.ts'), 'done')
    assert.equal(await push('a.proto'), 'done')
    const miss = ['filtered', undefined, 'no file of the push is one of paths']
    for (const names of [['services/web/a.ts'], ['services/api/README.md'], []])
      assert.deepEqual(await push(...names), miss)
    assert.deepEqual(await endOf('/a', { action: 'created' }), [
      'filtered',
      undefined,
      'it changes no files, and has paths',
    ])
  })

  it('asks GitHub and GitLab for the files of a pull or merge request before its agent runs', async () => {
    const repository = { full_name: 'acme/app' }
    const pull = (number: number) => ({ pull_request: { number }, repository })
    files.set('/repos/acme/app/pulls/1/files', [{ filename: 'services/api/a.ts' }])
    files.set('/repos/acme/app/pulls/2/files', [
      { filename: 'services/web/a.ts' },
      { filename: 'services/api/a.md' },
    ])
    files.set('/repos/acme/app/pulls/3/files', [
      { filename: 'old/a.ts', previous_filename: 'services/api/a.ts' },
    ])
    assert.equal(await endOf('/a', pull(1)), 'done')
    assert.deepEqual(await endOf('/a', pull(2)), [
      'filtered',
      'paths-unmatched',
      'none of 2 changed files is one of paths',
    ])
    // Moved out of the folder; and a comment on a pull request.
    assert.equal(await endOf('/a', pull(3)), 'done')
    assert.equal(await endOf('/a', { issue: { number: 1, pull_request: {} }, repository }), 'done')
    const merge = (iid: number) => ({
      object_kind: 'merge_request',
      object_attributes: { iid },
      project: { path_with_namespace: 'group/app' },
    })
    const diffs = '/api/v4/projects/group%2Fapp/merge_requests'
    files.set(`${diffs}/4/diffs`, [{ old_path: 'x', new_path: 'services/api/x' }])
    files.set(`${diffs}/5/diffs`, [{ old_path: 'x', new_path: 'x' }])
    assert.equal(await endOf('/a', merge(4)), 'done')
    assert.deepEqual(await endOf('/a', merge(5)), [
      'filtered',
      'paths-unmatched',
      'the changed file is not one of paths',
    ])
    const asked = api.requests.map(({ path, headers }) => [
      path.split('/')[1],
      headers.authorization,
    ])
    assert.deepEqual(
      new Set(asked.map(String)),
      new Set([`repos,Bearer ${token}`, 'api,Bearer a-token-of-gitlab']),
    )
    // A list that cannot be read is a failure, and no reason to run or not to.
    assert.match((await run('/a', merge(6))).detail ?? '', /^the changed files: /)
  })

  it('takes the files between base and ref of the workspace', async () => {
    const web = await git.push({ 'services/web/a.ts': 'a' })
    const api = await git.push({ 'services/api/a.ts': 'a' })
    assert.equal(await endOf('/workspace', { base, head: api }), 'done')
    assert.deepEqual(await endOf('/workspace', { base, head: web }), [
      'filtered',
      'paths-unmatched',
      'the changed file is not one of paths',
    ])
  })
})
