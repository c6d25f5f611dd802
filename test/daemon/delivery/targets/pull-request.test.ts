import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runProcess } from '../../../../daemon/agents/process.ts'
import { toGitOrigin } from '../../../../daemon/delivery/targets/github/github-api.ts'
import { createGit } from '../../../../daemon/workspace/git.ts'
import { configureNetwork } from '../../../../shared/network/outgoing.ts'
import {
  type ChangeScene,
  sceneToken as token,
  startChangeScene,
} from '../../../support/servers/change-scene.ts'
import type { GithubServer } from '../../../support/servers/github-server.ts'
import type { GitServer } from '../../../support/servers/git-server.ts'
import {
  makeCertificates,
  startProxy,
  startTlsFront,
} from '../../../support/servers/private-network.ts'
import { json, reset } from '../../../support/servers/target-server.ts'
import { temporaryFolder } from '../../../support/temporary.ts'

const branch = 'doorward/evt_0123456789abcdef01'
const { signal } = new AbortController()
const git = createGit(runProcess, process.env, '/nowhere')

describe('a pull request with what an agent changed', () => {
  let scene: ChangeScene
  let github: GithubServer
  let server: GitServer
  let change: ChangeScene['change']
  let deliver: ChangeScene['deliver']
  let served: ChangeScene['served']
  beforeEach(async () => {
    scene = await startChangeScene()
    ;({ github, server, change, deliver, served } = scene)
  })
  afterEach(() => scene.close())

  it('is opened from a branch of its own, with the answer as its text', async () => {
    const code = await change({ 'src/door.ts': 'fixed\n' })
    const { result, messages, shown = '' } = await deliver(code)
    assert.deepEqual([result?.state, result?.detail], ['done', 'pull request #8'])
    const [title, ...body] = shown.split('\n\ncommit: ')[0]?.split('\n\n') ?? []
    assert.deepEqual([title, body.join('\n\n')], [github.pulls[0]?.title, github.pulls[0]?.body])
    const tree = await served('rev-parse', `${branch}^{tree}`)
    assert.match(shown, new RegExp(`src/door\\.ts +\\|[^]*tree ${tree}, on ${code.head}$`))
    assert.deepEqual(github.pulls, [
      {
        title: 'Fix the door',
        head: branch,
        base: 'main',
        body: '# Fix the door\n\nThanks @\u200boctocat.',
      },
    ])
    assert.equal(await served('show', `${branch}:src/door.ts`), 'fixed')
    assert.equal(await served('rev-parse', `${branch}^`), code.head)
    assert.equal(
      await served('log', '-1', '--format=%an <%ae>%n%s', branch),
      'doorward <doorward@localhost>\nFix the door',
    )
    const sha = await served('rev-parse', branch)
    for (const event of [
      { after: sha },
      { action: 'opened', pull_request: { head: { sha } } },
      { action: 'completed', workflow_run: { head_sha: sha } },
    ])
      assert.equal(messages.isOwnCommit(event), true)
    for (const event of [
      { after: code.head },
      { action: 'submitted', review: {}, pull_request: { head: { sha } } },
      null,
    ])
      assert.equal(messages.isOwnCommit(event), false)
  })

  it('has the author, the sign-off, the labels and the reviewers of its rule', async () => {
    const code = await change({ 'src/door.ts': 'fixed\n' })
    const pullRequest = { draft: true, labels: ['bot'], reviewers: ['ada', 'acme/doors'] }
    const { result } = await deliver(code, {
      publish: { commit: { author: 'login', signoff: true }, pullRequest },
    })
    assert.equal(result?.detail, 'pull request #8')
    assert.equal(github.pulls[0]?.draft, true)
    assert.deepEqual(github.details, [
      ['/issues/8/labels', { labels: ['bot'] }],
      ['/pulls/8/requested_reviewers', { reviewers: ['ada'], team_reviewers: ['doors'] }],
    ])
    const person = 'The Octocat <583231+octocat@users.noreply.127.0.0.1>'
    assert.equal(
      await served('log', '-1', '--format=%an <%ae>%n%cn <%ce>', branch),
      `${person}\n${person}`,
    )
    assert.equal(
      await served('log', '-1', '--format=%(trailers)', branch),
      `Signed-off-by: ${person}`,
    )
    assert.equal(await served('rev-parse', `${branch}^`), code.head)
  })

  it('is committed by the account of the bot that answers, unless the rule names an author', async () => {
    await deliver(await change({ 'src/door.ts': 'by the bot\n' }), { bot: 'github@acme-doorward' })
    assert.equal(
      await served('log', '-1', '--format=%an <%ae>', branch),
      'acme-doorward[bot] <4711+acme-doorward[bot]@users.noreply.127.0.0.1>',
    )
  })

  it('is opened without reviewers that GitHub refuses, by an author that the rule names', async () => {
    const { result } = await deliver(await change({ a: 'b' }), {
      publish: {
        commit: { author: 'Ada L. <ada@example.com>' },
        pullRequest: { reviewers: ['nobody'] },
      },
    })
    assert.deepEqual(
      [result?.state, result?.detail],
      ['done', 'pull request #8; its reviewers are not set, as GitHub refused them (422)'],
    )
    assert.equal(
      await served('log', '-1', '--format=%an <%ae>', branch),
      'Ada L. <ada@example.com>',
    )
  })

  it('is not opened twice, when an attempt had no response', async () => {
    const code = await change({ 'src/door.ts': 'fixed\n' })
    github.next(json(200, []), json(200, { default_branch: 'main' }), async (...asked) => {
      github.pulls.push(asked[1].fields as GithubServer['pulls'][number])
      github.commits.set(branch, await served('rev-parse', branch))
      return reset(...asked)
    })
    const { result } = await deliver(code)
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    assert.equal(github.pulls.length, 1)
  })

  it('has another base where the target names one', async () => {
    const code = await change({ a: 'b' })
    const { result } = await deliver(code, { to: 'pull-request:acme/door@release/1' })
    assert.match(result?.detail ?? '', /its base branch may be missing/)
  })

  it('is none where the agent changed nothing, or its rule has no code', async () => {
    const { result } = await deliver(await change({}))
    assert.deepEqual(
      [result?.state, result?.detail],
      ['done', 'the agent changed nothing: there is no pull request'],
    )
    const steering = await deliver(await change({ 'CLAUDE.md': 'of the agent' }))
    assert.equal(
      steering.result?.detail,
      'all that the agent changed is left out: there is no pull request',
    )
    const without = await deliver(undefined)
    assert.match(without.result?.detail ?? '', /workspace: with access: write/)
    assert.equal(github.requests.length, 0)
  })

  it('is refused for files that run or rule others, unless its rule names them', async () => {
    const code = await change({ '.github/workflows/ci.yml': 'on: push\n', a: 'b' })
    const { result } = await deliver(code)
    assert.equal(
      result?.detail,
      'the agent changed what its rule does not allow: .github/workflows/ci.yml (runs with the secrets of the repository) (if it may, name such files by globs in allow_files of the rule)',
    )
    assert.equal(github.requests.length, 0)
    const publish = { allowFiles: ['.github/workflows/**'] }
    const { result: sent, granted } = await deliver(code, { publish })
    assert.equal(sent?.state, 'done')
    const permissions = { contents: 'write', pull_requests: 'write', workflows: 'write' }
    assert.deepEqual(granted, [permissions])
  })

  it('is refused for many files, and for large ones', async () => {
    const many = Array.from({ length: 101 }, (_, index) => [`f${index}`, 'x'] as const)
    const { result } = await deliver(await change(Object.fromEntries(many)))
    assert.match(result?.detail ?? '', /changed 101 files, 100 are allowed/)
    const half = 'x'.repeat(550_000)
    const large = await deliver(await change({ a: half, b: `${half}y` }))
    assert.match(large.result?.detail ?? '', /have 1075 KB, 1024 KB are allowed/)
    const one = await change({ 'assets/big': half + half })
    assert.match((await deliver(one)).result?.detail ?? '', /assets\/big \(is over 1 MB\)/)
    const publish = { allowFiles: ['assets/**'] }
    assert.equal((await deliver(one, { publish })).result?.state, 'done')
  })

  it('goes to the repository of the workspace alone, and not when its mirror was cleared', async () => {
    const code = await change({ a: 'b' })
    const { result } = await deliver(code, { to: 'pull-request:acme/public' })
    assert.match(result?.detail ?? '', /has another repository/)
    assert.ok(typeof code.change === 'object')
    await rm(code.change.gitDir, { recursive: true })
    const cleared = await deliver(code)
    assert.match(cleared.result?.detail ?? '', /no longer in the workspace .*--again/)
  })

  it('leaves a branch alone that has other commits, and obeys the rules of the repository', async () => {
    const code = await change({ a: 'b' })
    await server.push({ other: 'x' }, { to: `refs/heads/${branch}` })
    const { result } = await deliver(code)
    assert.match(result?.detail ?? '', /there is one of an earlier run \(merge or delete it\)/)
    await served('update-ref', '-d', `refs/heads/${branch}`)
    const hook = join(server.folder, 'hooks', 'pre-receive')
    await mkdir(dirname(hook), { recursive: true })
    await writeFile(hook, '#!/bin/sh\necho no >&2\nexit 1\n', { mode: 0o755 })
    assert.match((await deliver(code)).result?.detail ?? '', /the repository refuses it/)
    assert.equal(github.pulls.length, 0)
  })

  it('refreshes a token that git refuses, then asks for a login, and shows no token', async () => {
    const code = await change({ a: 'b' })
    assert.equal((await deliver(code, { tokens: ['gho_old', token] })).result?.state, 'done')
    const { result, logged } = await deliver(await change({ a: 'c' }), { tokens: ['gho_canary'] })
    assert.equal(result?.code, 'needs-login')
    assert.doesNotMatch(JSON.stringify(result) + logged(), /canary/)
  })

  it('says why nothing was pushed', async () => {
    const { change: captured } = await change({ a: 'b' })
    assert.ok(typeof captured === 'object')
    const { gitDir } = captured
    // The stand-in of the API answers git, too.
    const url = `${github.origin}/acme/door.git`
    await git(['config', 'remote.origin.url', url], { gitDir, cwd: gitDir, signal })
    for (const [status, words] of [
      [403, /may not push there \(it needs the scope repo/],
      [404, /no such repository/],
      [301, /was renamed/],
    ] as const) {
      github.next(json(200, []), json(200, { default_branch: 'main' }), json(status, {}))
      const { result } = await deliver({ head: '', change: captured }, { apiOrigin: github.origin })
      assert.match(result?.detail ?? '', words)
      assert.equal(result?.attempts, 1)
    }
  })

  it('sends what is new alone, also when the repository has moved on', async () => {
    await server.push({ old: 'x'.repeat(2000) })
    const blob = await server.git('rev-parse', 'HEAD:old')
    await server.push({ old: undefined })
    const code = await change({ a: 'b' })
    await server.push({ newer: 'y' })
    assert.equal((await deliver(code)).result?.state, 'done')
    assert.equal(await served('rev-parse', `${branch}^`), code.head)
    assert.ok(typeof code.change === 'object')
    const { gitDir } = code.change
    const list = ['rev-list', '--objects', '--all', '--missing=print']
    const { stdout } = await git(list, { gitDir, cwd: gitDir, signal })
    // It was not fetched in order to be sent.
    assert.match(String(stdout), new RegExp(`^\\?${blob}$`, 'm'))
  })

  it('names the proxy that refuses the push, or the certificate that git does not trust', async () => {
    const certificates = await makeCertificates()
    const front = await startTlsFront(certificates, Number(new URL(server.origin).port))
    let isRefused = false
    // The API is asked before git is.
    const proxy = await startProxy((_, agent) => (isRefused ||= agent.startsWith('git/')))
    const apiOrigin = `https://git.corp.example:${front.port}`
    const code = await change({ a: 'b' })
    assert.ok(typeof code.change === 'object')
    const { gitDir } = code.change
    const config = ['config', 'remote.origin.url', `${apiOrigin}/acme/door.git`]
    await git(config, { gitDir, cwd: gitDir, signal })
    const homeFolder = await temporaryFolder()
    const network = { HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: certificates.caFile }
    configureNetwork(network)
    const detailWith = async (env: Readonly<Record<string, string>>) => {
      const { result } = await deliver(code, { apiOrigin, env, homeFolder })
      return `${result?.attempts} ${result?.detail}`
    }
    try {
      assert.match(
        await detailWith(network),
        /^1 the branch \S+ was not pushed: the proxy \S+ refuses connections to git\.corp\.example:\d+ \(403\) \(ask/,
      )
      await proxy.close()
      const open = await startProxy()
      const behind = { ...network, HTTPS_PROXY: open.url }
      configureNetwork(behind)
      try {
        assert.match(
          await detailWith({ HTTPS_PROXY: open.url }),
          /^1 .* not pushed: the certificate of the server is not trusted \(.*NODE_EXTRA_CA_CERTS/,
        )
        assert.equal(await detailWith(behind), '1 pull request #8')
      } finally {
        await open.close()
      }
    } finally {
      configureNetwork(process.env)
      front.close()
    }
  })

  it('is of the host of its API', () => {
    assert.equal(toGitOrigin(), 'https://github.com')
    assert.equal(toGitOrigin('https://api.acme.ghe.com'), 'https://acme.ghe.com')
    assert.equal(toGitOrigin('https://ghe.example.com/api/v3'), 'https://ghe.example.com')
  })
})
