import assert from 'node:assert/strict'
import { accessTokenSchema } from '../../../../shared/api/api.ts'
import { version } from '../../../../shared/version.ts'
import type { ContractServer } from '../../support/contract-server.ts'
import { hasTerminal, resultOf, run, startOnTerminal } from '../../support/cli.ts'
import { startTokenServer, tokenOf } from '../../support/token-server.ts'

describe('cli: oauth token', () => {
  let server: ContractServer

  before(async () => {
    server = await startTokenServer({
      github: {},
      dead: {
        refused: [409, { code: 'needs-login', detail: 'dead was revoked', hint: 'look there' }],
      },
      damaged: {
        refused: [500, { code: 'token-file-damaged', detail: 'the token file could not be read' }],
      },
      away: {
        refused: [
          502,
          { code: 'provider-unavailable', detail: 'away does not answer', hint: 'wait' },
        ],
      },
      short: { expiresAt: new Date(Date.now() + 3_600_000).toISOString() },
      never: { expiresAt: null },
      'my-org': { accessToken: 'a b$(id)' },
      two: { accessToken: 'one\nGIT=two' },
      none: { accessToken: '' },
    })
  })
  after(async () => server.close())

  const token = async (...args: string[]) => run(['oauth', 'token', ...args], { home: server.home })

  it('prints the token alone, on a terminal too', async function () {
    assert.deepEqual(await token('github'), {
      code: 0,
      stdout: `${tokenOf('github')}\n`,
      stderr: '',
    })
    if (!hasTerminal()) return this.skip()
    const shown = await resultOf(startOnTerminal('oauth token github', server))
    assert.equal(shown.stdout, `${tokenOf('github')}\r\n`)
  })

  it('prints the whole answer of the daemon with --json', async () => {
    const { code, stdout, stderr } = await token('github', '--json')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(accessTokenSchema.parse(JSON.parse(stdout)).accessToken, tokenOf('github'))
  })

  it('prints a header, JSON or a line of env', async () => {
    const header = `Bearer ${tokenOf('github')}`
    const cases = [
      ['token', tokenOf('github')],
      ['header', `Authorization: ${header}`],
      ['header-json', `{"Authorization":"${header}"}`],
      ['env', `GITHUB_TOKEN=${tokenOf('github')}`],
    ] as const
    for (const [format, stdout] of cases)
      assert.deepEqual(await token('github', '--format', format), {
        code: 0,
        stdout: `${stdout}\n`,
        stderr: '',
      })
    const whole = await token('github', '--format', 'json')
    assert.deepEqual(whole, await token('github', '--json'))
  })

  it('writes no line of env that a shell would read otherwise', async () => {
    const { code, stdout, stderr } = await token('my-org', '--format', 'env')
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /hint: doorward oauth exec my-org -- command\n$/)
    assert.doesNotMatch(stderr, /a b/)
  })

  it('names the nearest format, and asks nobody for another one', async () => {
    const before = server.calls.length
    const near = await token('github', '--format', 'headers')
    assert.equal(near.code, 2)
    assert.match(near.stderr, /"headers" is not a format\nhint: did you mean "header"\?/)
    const far = await token('github', '--format', 'toString')
    assert.match(far.stderr, /formats are token, json, header, header-json, env/)
    assert.equal((await token('github', '--json', '--format', 'env')).code, 2)
    assert.equal(server.calls.length, before)
  })

  it('asks for a validity only when told, in whole seconds', async () => {
    const cases = [
      [[], ''],
      [['--min-validity', '90s'], '?min_validity=90'],
      [['--min-validity', '10m'], '?min_validity=600'],
      [['--min-validity', '45'], '?min_validity=45'],
      [['--min-validity', '1500ms'], '?min_validity=2'],
    ] as const
    for (const [args, query] of cases) {
      await token('github', ...args)
      const last = server.calls.at(-1)
      assert.equal(last?.path, `/oauth/tokens/github/access${query}`)
      assert.equal(last?.userAgent, `doorward-cli/${version} (oauth token)`)
    }
  })

  it('says when the provider has no token that lives so long', async () => {
    const long = await token('short', '--min-validity', '2h')
    assert.deepEqual([long.code, long.stdout], [0, `${tokenOf('short')}\n`])
    assert.match(long.stderr, /^warning: this token of short is valid for 59m \d+s only\n$/)
    for (const args of [
      ['short'],
      ['short', '--min-validity', '2h', '-q'],
      ['never', '--min-validity', '2h'],
    ])
      assert.equal((await token(...args)).stderr, '')
  })

  it('ends with 4 and the command to run when a login is needed', async () => {
    const missing = await token('slack')
    assert.deepEqual([missing.code, missing.stdout], [4, ''])
    assert.match(missing.stderr, /not logged in to slack\nhint: doorward oauth login slack\n$/)
    assert.equal((await token('damaged')).code, 4)
    const dead = await token('dead', '--json')
    assert.equal(dead.code, 4)
    assert.deepEqual(JSON.parse(dead.stderr), {
      code: 'needs-login',
      detail: 'dead was revoked',
      hint: 'look there',
    })
  })

  it('ends with 1 when the provider cannot be reached', async () => {
    const { code, stderr } = await token('away')
    assert.equal(code, 1)
    assert.match(stderr, /away does not answer\nhint: wait/)
  })

  it('gives out nothing that is more than a token', async () => {
    for (const provider of ['two', 'none']) {
      const { code, stdout } = await token(provider)
      assert.deepEqual([code, stdout], [1, ''])
    }
  })

  it('asks nobody about what can be no provider, nor with a bad validity', async () => {
    const before = server.calls.length
    const upper = await token('GitHub')
    assert.equal(upper.code, 1)
    assert.match(upper.stderr, /did you mean "github"\?/)
    assert.equal((await token('..')).code, 1)
    for (const duration of ['soon', '-5s', '1y', '31d'])
      assert.equal((await token('github', '--min-validity', duration)).code, 2)
    assert.equal(server.calls.length, before)
  })
})
