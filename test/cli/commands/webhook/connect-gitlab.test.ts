import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'dotenv'
import { hooksSchema } from '../../../../shared/api/hooks.ts'
import { type RunningDaemon, startDaemon } from '../../../support/daemon/daemon.ts'
import {
  type GitlabHookServer,
  startGitlabHookServer,
} from '../../../support/servers/gitlab-hook-api.ts'
import { run } from '../../support/cli.ts'

const project = 'acme/tools/door'
const path = `/webhook/gitlab/${project}`

describe('cli: webhook connect gitlab', () => {
  let server: GitlabHookServer
  let daemon: RunningDaemon

  before(async () => {
    server = await startGitlabHookServer()
    const gateway = `oauth: { callback_port: 0 }
server: { public_url: https://gateway.example }
targets: { gitlab: { token_env: GL, api_url: "${server.apiUrl}" } }
`
    daemon = await startDaemon({ gateway, env: 'GL=glpat-never-shown\n' })
    server.tunnel = daemon.url
  })
  after(async () => {
    server.close()
    await daemon.stop()
  })

  const cli = async (...args: string[]) => {
    const result = await run(['webhook', ...args], { home: daemon.home })
    assert.ok(!(result.stdout + result.stderr).includes('glpat'))
    return result
  }
  const on = (hook: GitlabHookServer['hooks'][number] | undefined) =>
    Object.keys(hook?.fields ?? {}).filter((key) => hook?.fields[key] === true)

  it('makes the hook of a project with a secret of ours, shows what its test sent, and repairs it', async () => {
    const args = ['connect', 'gitlab', project, '--on', 'merge_request', '--on', 'note']
    const { code, stdout, stderr } = await cli(...args)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /acme\/tools\/door, hook 10 created/)
    assert.match(stdout, /evt_\w+ arrived/)
    const variables = parse(await readFile(daemon.home.env, 'utf8'))
    const secret = variables['GITLAB_ACME_TOOLS_DOOR_WEBHOOK_SECRET'] ?? ''
    const [hook] = server.hooks
    assert.match(secret, /^[0-9a-f]{64}$/)
    assert.deepEqual(
      [hook?.owner, hook?.token, hook?.fields['url'], on(hook)],
      [
        project,
        secret,
        `https://gateway.example${path}`,
        ['enable_ssl_verification', 'merge_requests_events', 'note_events'],
      ],
    )

    if (hook) {
      hook.alertStatus = 'disabled'
      hook.token = ''
    }
    assert.match((await cli('hooks')).stderr, /the hook is switched off/)
    const again = await cli('connect', 'gitlab', project)
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout, /hook 10 updated/)
    assert.deepEqual([hook?.token, server.hooks.length], [secret, 1])
    const listed = hooksSchema.parse(JSON.parse((await cli('hooks', '--json')).stdout))
    assert.deepEqual(
      listed.hooks.map(({ state, events, last }) => [state, events, last?.answer, last?.here]),
      [['active', ['merge_request', 'note'], '202', true]],
    )
    assert.equal((await cli('disconnect', project)).code, 0)
    assert.equal(server.hooks.length, 0)
    const text = await readFile(join(daemon.home.config, 'webhooks.yaml'), 'utf8')
    assert.doesNotMatch(text, /source:/)
  })

  it('makes the hook of a group, which has events of its own', async () => {
    const { code, stdout, stderr } = await cli('connect', 'gitlab', 'acme', '--on', 'subgroup')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /\/webhook\/gitlab\/acme, new/)
    assert.deepEqual(on(server.hooks[0]), ['enable_ssl_verification', 'subgroup_events'])
  })

  it('says what a project does not have, and which scope is missing', async () => {
    const group = await cli('connect', 'gitlab', project, '--path', '/p', '--on', 'subgroup')
    assert.match(group.stderr, /GitLab has no hook for the event subgroup/)
    assert.match((await cli('connect', 'gitlab', 'acme/other')).stderr, /no such project or group/)
    server.hasScope = false
    const { code, stderr } = await cli('connect', 'gitlab', project, '--path', '/q')
    server.hasScope = true
    assert.equal(code, 4)
    assert.match(stderr, /it lacks api\n.*give the token in GL the scope api/)
  })
})
