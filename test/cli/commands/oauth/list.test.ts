import assert from 'node:assert/strict'
import type { Status, TokenSummary } from '../../../../shared/api/api.ts'
import { statusWith } from '../../../support/daemon/fake-daemon.ts'
import { type ContractServer, startContractServer } from '../../support/contract-server.ts'
import { hasTerminal, resultOf, run, startOnTerminal } from '../../support/cli.ts'

const googleScopes = ['gmail.modify', 'calendar', 'drive.file'].map(
  (name) => `https://www.googleapis.com/auth/${name}`,
)

const token = (more: Partial<TokenSummary>): TokenSummary => ({
  provider: 'github',
  status: 'ok',
  account: { id: '1', name: 'octocat' },
  scopes: ['repo', 'user'],
  expiresAt: null,
  refreshable: false,
  obtainedAt: '2026-06-07T10:00:00.000Z',
  ...more,
})

describe('cli: oauth list', () => {
  const listing = async (
    tokens: readonly TokenSummary[],
    problems: Status['problems'] = [],
  ): Promise<ContractServer> =>
    startContractServer(({ path }) =>
      path === '/status' ? [200, statusWith({ problems })] : [200, { tokens }],
    )
  const list = async (tokens: readonly TokenSummary[], problems: Status['problems'] = []) => {
    const server = await listing(tokens, problems)
    const result = await run(['oauth', 'list'], { home: server.home })
    await server.close()
    return { ...result, calls: server.calls }
  }

  it('says in words when a token expires, and asks for no more than the list', async () => {
    const inTwoHours = new Date(Date.now() + 7_205_000).toISOString()
    const { stdout, stderr, calls } = await list([
      token({}),
      token({ provider: 'slack', account: null, scopes: [], expiresAt: inTwoHours }),
    ])
    const [header, ...rows] = stdout.trimEnd().split('\n')
    assert.match(header ?? '', /^PROVIDER +ACCOUNT +STATUS +EXPIRES +SCOPES$/)
    assert.match(rows[0] ?? '', /^github +octocat +ok +never +repo user$/)
    assert.match(rows[1] ?? '', /^slack +- +ok +in 2h$/)
    assert.equal(stderr, '')
    assert.deepEqual(
      calls.map(({ path }) => path),
      ['/oauth/tokens'],
    )
  })

  it('shortens the scopes of Google for people, and not for programs', async () => {
    const server = await listing([token({ provider: 'google', scopes: googleScopes })])
    const text = await run(['oauth', 'list'], { home: server.home })
    const json = await run(['oauth', 'list', '--json'], { home: server.home })
    await server.close()
    assert.match(text.stdout, / gmail\.modify calendar drive\.file$/m)
    assert.deepEqual(JSON.parse(json.stdout), {
      tokens: [token({ provider: 'google', scopes: googleScopes })],
    })
  })

  it('keeps each row on one line of a terminal', async function () {
    if (!hasTerminal()) return this.skip()
    const server = await listing([
      token({
        account: { id: '1', name: `${'long.'.repeat(20)}@example.com` },
        scopes: Array.from({ length: 40 }, (_, index) => `scope:${index}`),
      }),
    ])
    const { stdout } = await resultOf(startOnTerminal('oauth list', server))
    await server.close()
    const lines = stdout.trimEnd().split('\r\n')
    assert.equal(lines.length, 2)
    for (const line of lines) assert.ok(line.length <= 80 + '\u001b[32m\u001b[39m'.length, line)
  })

  it('shows what was not granted, with the command that asks for all of it', async () => {
    const { stderr } = await list([token({ missingScopes: ['gist', googleScopes[1] ?? ''] })])
    assert.equal(
      stderr,
      `not granted at github: gist, calendar\nhint: doorward oauth login github --scopes repo,user,gist,${googleScopes[1]}\n`,
    )
  })

  it('says why a login is over, where the daemon knows it', async () => {
    const over = token({ status: 'needs-login' })
    const problems: Status['problems'] = [
      { code: 'secret-unset', detail: 'the webhook /github has no secret', hint: 'set it' },
      {
        code: 'needs-login',
        detail: 'the login to hub has ended: x',
        hint: 'doorward oauth login hub',
        about: { provider: 'hub' },
      },
      {
        code: 'needs-login',
        detail: 'the login to github has ended: the access was \u001b[31mrevoked',
        hint: 'doorward oauth login github',
        about: { provider: 'github' },
      },
      {
        code: 'token-file-insecure',
        detail: '/home/ada/.doorward/tokens/slack.json is open to other users (mode 644)',
        hint: 'chmod 600 /home/ada/.doorward/tokens/slack.json',
        about: { provider: 'slack' },
      },
    ]
    const { code, stderr } = await list(
      [over, { ...over, provider: 'slack' }, { ...over, provider: 'google' }],
      problems,
    )
    assert.equal(code, 0)
    assert.deepEqual(stderr.trimEnd().split('\n'), [
      'the login to github has ended: the access was revoked',
      'hint: doorward oauth login github',
      '/home/ada/.doorward/tokens/slack.json is open to other users (mode 644)',
      'hint: chmod 600 /home/ada/.doorward/tokens/slack.json',
      'hint: doorward oauth login google',
    ])
  })
})
