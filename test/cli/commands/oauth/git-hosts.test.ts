import assert from 'node:assert/strict'
import { readQuestion } from '../../../../cli/commands/oauth/git-credential.ts'
import { gitHosts, hostAt } from '../../../../shared/config/git-hosts.ts'

const asks = (protocol: string, host: string) => ({ protocol, host, username: undefined })

describe('gitHosts', () => {
  it('is github.com and its gists, unless gateway.yaml says otherwise', () => {
    const usual = ['https://github.com', 'https://gist.github.com'].map((origin) => ({
      provider: 'github',
      origin,
    }))
    for (const value of [undefined, null, {}, { providers: {} }, { providers: { github: null } }])
      assert.deepEqual(gitHosts(value), usual)
    assert.deepEqual(gitHosts({ providers: { github: { client_id: 'x' }, other: {} } }), usual)
  })

  it('is the host of an Enterprise in its place, and of each provider that speaks like github', () => {
    const providers = {
      github: { token_endpoint: 'https://ghe.example.com/login/oauth/access_token' },
      work: { dialect: 'github', issuer: 'https://work.example.com:8443/login/oauth' },
      slackish: { dialect: 'slack', token_endpoint: 'https://slack.example.com/x' },
      empty: { dialect: 'github' },
    }
    assert.deepEqual(gitHosts({ providers }), [
      { provider: 'github', origin: 'https://ghe.example.com' },
      { provider: 'work', origin: 'https://work.example.com:8443' },
    ])
  })

  it('takes plain http on loopback alone', () => {
    const at = (token_endpoint: string) =>
      gitHosts({ providers: { work: { dialect: 'github', token_endpoint } } })
        .filter(({ provider }) => provider === 'work')
        .map(({ origin }) => origin)
    assert.deepEqual(at('http://127.0.0.1:8080/token'), ['http://127.0.0.1:8080'])
    for (const address of ['http://ghe.example.com/a', 'file:///etc', 'nonsense'])
      assert.deepEqual(at(address), [])
  })

  it('is each host that a provider names in git_hosts, over https, and on loopback over http too', () => {
    const providers = {
      corp: {
        issuer: 'https://id.corp.example',
        git_hosts: ['git.corp.example', 'Git.corp.example:8443'],
      },
      gitlab: { git_hosts: ['gitlab.com', '127.0.0.1:8080', 'a/b', 'u@evil.example', 7] },
      empty: { git_hosts: 'git.corp.example' },
    }
    const named = gitHosts({ providers }).filter(({ isNamed }) => isNamed)
    assert.deepEqual(
      named.map(({ provider, origin }) => `${provider} ${origin}`),
      [
        'corp https://git.corp.example',
        'corp https://git.corp.example:8443',
        'gitlab https://gitlab.com',
        'gitlab https://127.0.0.1:8080',
        'gitlab http://127.0.0.1:8080',
      ],
    )
  })

  it('is still github.com where github logs in on this machine', () => {
    const at = (token_endpoint: string) =>
      gitHosts({ providers: { github: { token_endpoint } } }).map(({ origin }) => origin)
    for (const origin of ['http://127.0.0.1:8080', 'http://localhost:1', 'https://[::1]:8443'])
      assert.deepEqual(at(`${origin}/token`), [
        origin,
        'https://github.com',
        'https://gist.github.com',
      ])
    assert.deepEqual(at('http://ghe.example.com/a'), [])
  })
})

describe('hostAt', () => {
  const hosts = gitHosts({
    providers: { ghe: { dialect: 'github', token_endpoint: 'http://127.0.0.1:8080/a' } },
  })

  it('finds the provider of exactly this protocol, host and port', () => {
    const cases = [
      ['https', 'github.com', 'github'],
      ['https', 'GitHub.com', 'github'],
      ['https', 'github.com:443', 'github'],
      ['https', 'gist.github.com', 'github'],
      ['http', '127.0.0.1:8080', 'ghe'],
    ] as const
    for (const [protocol, host, provider] of cases)
      assert.equal(hostAt(asks(protocol, host), hosts)?.provider, provider, host)
  })

  it('finds none for any other', () => {
    const cases = [
      ['http', 'github.com'],
      ['https', 'github.com:8443'],
      ['https', 'github.com.evil.example'],
      ['https', 'evil-github.com'],
      ['https', 'api.github.com'],
      ['https', 'evil.example/github.com'],
      ['https', 'evil.example#@github.com'],
      ['https', 'evil@github.com'],
      ['https', 'github.com@evil.example'],
      ['https', 'github.com?'],
      ['https', ''],
      ['', 'github.com'],
      ['ssh', 'github.com'],
      ['https', '127.0.0.1:8080'],
      ['http', 'localhost:8080'],
      ['http', '127.0.0.1'],
    ] as const
    for (const [protocol, host] of cases)
      assert.equal(
        hostAt(asks(protocol, host), hosts)?.provider,
        undefined,
        `${protocol}://${host}`,
      )
  })
})

describe('readQuestion', () => {
  it('reads lines up to an empty one; the last of a key counts', () => {
    const text = 'capability[]=state\nwwwauth[]=Basic\trealm="a=b"\nprotocol=http\nprotocol=https\n'
    assert.deepEqual(readQuestion(`${text}host=github.com\nusername=ada\n\nhost=evil.example\n`), {
      protocol: 'https',
      host: 'github.com',
      username: 'ada',
    })
    assert.deepEqual(readQuestion(''), { protocol: '', host: '', username: undefined })
  })

  it('refuses what git would not write', () => {
    for (const text of ['host', '=x', 'host=github.com\rusername=x', 'username=a\u001bb\n'])
      assert.throws(() => readQuestion(text), { code: 'usage' })
  })
})
