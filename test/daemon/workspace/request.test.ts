import assert from 'node:assert/strict'
import {
  checkRef,
  expandWorkspace,
  findRepository,
  type WorkspaceRequest,
} from '../../../daemon/workspace/request.ts'
import type { EventScope } from '../../../daemon/webhook/read-delivery.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { parseWorkspace } from '../../../shared/config/workspace.ts'
import { DoorwardError } from '../../../shared/errors.ts'

const hash = 'ab12'.repeat(10)

const scopeOf = (event: object): EventScope =>
  ({ event, headers: {}, webhook: { path: '/a' } }) as unknown as EventScope

const gateway = gatewayFileSchema.parse({
  providers: {
    gitlab: { git_hosts: ['git.corp.example:8443'] },
    github: { git_hosts: ['ghe.corp.example'] },
  },
})

const find = (repo: string, more: Partial<WorkspaceRequest> = {}) =>
  findRepository(
    {
      repo,
      fixed: 'nothing',
      ref: 'main',
      base: undefined,
      pull: undefined,
      login: undefined,
      access: 'read',
      depth: undefined,
      ...more,
    },
    gateway,
  )

const code = (name: string) => (error: unknown) =>
  error instanceof DoorwardError && error.code === name

describe('the ref of a workspace', () => {
  it('is a full hash or what git calls a branch, a tag or a ref', () => {
    const valid = [hash, 'main', 'v1.0', 'feature/a_b-c', 'refs/pull/7/head', 'ümlaut', "it's"]
    for (const name of valid) assert.equal(checkRef(name, 'ref'), name)
  })

  it('is nothing that git reads as an option, a range, a path or several refs', () => {
    const invalid = [
      '',
      '-q',
      '--upload-pack=sh',
      'a..b',
      'a...b',
      'a^',
      'a~1',
      'a:b',
      '+a:b',
      'a b',
      'a\nb',
      'a\u0000',
      '@',
      '@{u}',
      'a@{1}',
      '/a',
      'a/',
      'a//b',
      '.a',
      'a/.b',
      'a.lock',
      'a.',
      'refs/*',
      '?',
      '[a]',
      'a\\b',
      'x'.repeat(251),
    ]
    for (const name of invalid)
      if (name !== '+a:b')
        assert.throws(() => checkRef(name, 'ref'), code('workspace-invalid'), name)
    assert.throws(() => checkRef('+a:b', 'ref'), code('workspace-invalid'))
    assert.throws(() => checkRef('0'.repeat(40), 'base'), code('workspace-ref-not-found'))
  })
})

describe('the repository of a workspace', () => {
  it('is a name at the host of its login', () => {
    assert.equal(find('acme/app').url, 'https://ghe.corp.example/acme/app.git')
    const gitlab = find('group/sub/app', { login: 'gitlab@work' })
    assert.equal(gitlab.url, 'https://git.corp.example:8443/group/sub/app.git')
    assert.equal(gitlab.login?.name, 'gitlab@work')
    assert.throws(() => find('a/b', { login: 'linear' }), code('workspace-invalid'))
  })

  it('is an address whose host has a login, or that the rule itself names', () => {
    const known = find('https://github.com/acme/app.git')
    assert.deepEqual([known.url, known.login?.name], ['https://github.com/acme/app.git', 'github'])
    const other = find('https://git.example/a/b.git', { fixed: 'host' })
    assert.equal(other.login, undefined)
    assert.throws(() => find('https://git.example/a/b.git'), code('workspace-invalid'))
    assert.throws(
      () => find('https://github.com/a/b', { login: 'gitlab' }),
      code('workspace-invalid'),
    )
  })

  it('is nothing else', () => {
    for (const repo of [
      '',
      'app',
      '/etc',
      '~/app',
      '../app',
      'a/..',
      '-a/b',
      'a/b c',
      'a/b#c',
      'a\nb/c',
      'https://github.com',
      'https://user@github.com/a/b',
      'https://github.com/a/b?x',
      'https://github.com/a%2fb',
      'http://github.com/a/b',
      'https://github.com@evil.example/a/b',
      'https://github.com.evil.example/a/b',
      'git@github.com:a/b.git',
      'ssh://github.com/a/b',
      'file:///etc',
      'ext::sh -c x',
      'C:\\a',
    ])
      assert.throws(() => find(repo), code('workspace-invalid'), repo)
  })
})

describe('the values of an event', () => {
  const settings = parseWorkspace({
    repo: '{{event.repository.full_name}}',
    ref: '{{event.pull_request.head.sha}}',
    base: '{{event.pull_request.base.sha}}',
    access: 'read',
  })

  it('fill in a workspace, with where the server keeps the head of a fork', () => {
    const pull_request = { number: 7, head: { sha: hash }, base: { sha: hash } }
    const event = { repository: { full_name: 'acme/app' }, pull_request }
    const { repo, ref, base, pull, fixed } = expandWorkspace(settings, scopeOf(event))
    assert.deepEqual([repo, ref, base, pull], ['acme/app', hash, hash, 'refs/pull/7/head'])
    assert.equal(fixed, 'nothing')
    const merge = { object_kind: 'merge_request', object_attributes: { iid: 9 } }
    assert.equal(expandWorkspace(settings, scopeOf(merge)).pull, 'refs/merge-requests/9/head')
  })

  it('are texts and numbers only, and none makes the rest of an address another host', () => {
    for (const full_name of [{ a: 1 }, ['a/b'], null, true])
      assert.equal(expandWorkspace(settings, scopeOf({ repository: { full_name } })).repo, '')
    const { pull } = expandWorkspace(settings, scopeOf({ pull_request: { number: '7/../x' } }))
    assert.equal(pull, undefined)
    const address = parseWorkspace({
      repo: 'https://git.example/{{event.r}}',
      ref: 'main',
      access: 'read',
    })
    const host = parseWorkspace({
      repo: 'https://git.{{event.r}}/a/b',
      ref: 'main',
      access: 'read',
    })
    assert.equal(expandWorkspace(address, scopeOf({})).fixed, 'host')
    assert.equal(expandWorkspace(host, scopeOf({})).fixed, 'nothing')
  })

  it('cannot choose a path', () => {
    for (const repo of ['/srv/{{event.a}}', '~/{{event.a}}', 'git@github.com:a/b.git'])
      assert.throws(
        () => parseWorkspace({ repo, ref: 'main', access: 'read' }),
        code('config-invalid'),
      )
  })
})
