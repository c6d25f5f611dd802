import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '../../../../shared/version.ts'
import { cliMain } from '../../../support/daemon/daemon.ts'
import { gitEnvironment, startGitServer } from '../../../support/servers/git-server.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import type { ContractServer } from '../../support/contract-server.ts'
import { type CliResult, resultOf, run, start } from '../../support/cli.ts'
import { type TokenAnswer, startTokenServer, tokenOf } from '../../support/token-server.ts'

const github = 'protocol=https\nhost=github.com\n'

describe('cli: oauth git-credential', () => {
  const servers: ContractServer[] = []
  const serve = async (answers: Readonly<Record<string, TokenAnswer>>): Promise<ContractServer> => {
    const server = await startTokenServer(answers)
    servers.push(server)
    return server
  }
  let server: ContractServer
  before(async () => {
    server = await serve({ github: {}, work: {} })
  })
  after(async () => {
    for (const one of servers) await one.close()
  })

  const call = async (operation: string, stdin: string, { home } = server): Promise<CliResult> =>
    run(['oauth', 'git-credential', operation], { home, stdin })

  it('answers get for the hosts of github with name, password and expiry', async () => {
    const answer = `username=x-access-token\npassword=${tokenOf('github')}\npassword_expiry_utc=1893553445\n`
    for (const host of ['github.com', 'gist.github.com']) {
      const result = await call('get', `protocol=https\nhost=${host}\n\n`)
      assert.deepEqual(result, { code: 0, stdout: answer, stderr: '' })
    }
    assert.equal(server.calls.at(-1)?.userAgent, `doorward-cli/${version} (oauth git-credential)`)
  })

  it('answers while git keeps standard input open', async () => {
    const child = start(['oauth', 'git-credential', 'get'], {
      home: server.home,
      keepStdin: true,
    })
    child.stdin?.write(`${github}\n`)
    assert.equal((await resultOf(child)).code, 0)
  })

  it('keeps the name that git has, and says nothing of an end that is not known', async () => {
    const endless = await serve({ github: { expiresAt: null } })
    const { stdout } = await call('get', `${github}path=a/b.git\nusername=ada\n`, endless)
    assert.equal(stdout, `username=ada\npassword=${tokenOf('github')}\n`)
  })

  it('answers for the account that the user name of git names', async () => {
    const server = await startTokenServer(
      { github: {}, 'github@work': {}, 'github@ann': {}, other: {} },
      { github: 'Octocat', 'github@work': 'ann', 'github@ann': 'bob', other: 'carl' },
    )
    servers.push(server)
    for (const [username, login] of [
      ['octocat', 'github'],
      ['ANN', 'github@work'],
      ['work', 'github@work'],
      ['github@work', 'github@work'],
      ['github@ann', 'github@ann'],
      ['carl', 'github'],
    ] as const) {
      const { stdout } = await call('get', `${github}username=${username}\n\n`, server)
      assert.match(stdout, new RegExp(`^username=${username}\npassword=${tokenOf(login)}\n`))
    }
    const asked = server.calls.filter(({ path }) => path.includes('/access'))
    assert.deepEqual(
      [asked.at(0), asked.at(-1)].map((request) => request?.path),
      [
        '/oauth/tokens/github/access?exact=true&git_origin=https%3A%2F%2Fgithub.com',
        '/oauth/tokens/github/access?git_origin=https%3A%2F%2Fgithub.com',
      ],
    )
  })

  it('answers for the git hosts of a provider in gateway.yaml, and for no others of it', async () => {
    const corp = await serve({ corp: {}, 'corp@work': {} })
    await writeFile(
      join(corp.home.config, 'gateway.yaml'),
      'providers: { corp: { issuer: "https://id.corp.example", git_hosts: [git.corp.example] } }\n',
    )
    const { stdout } = await call('get', 'protocol=https\nhost=git.corp.example\n\n', corp)
    assert.match(stdout, new RegExp(`^username=oauth2\npassword=${tokenOf('corp')}\n`))
    // GitLab wants this name also where git's own has chosen the account.
    for (const [username, login, sent] of [
      ['work', 'corp@work', 'oauth2'],
      ['ann', 'corp', 'ann'],
    ] as const) {
      const input = `protocol=https\nhost=git.corp.example\nusername=${username}\n\n`
      const answer = await call('get', input, corp)
      assert.match(answer.stdout, new RegExp(`^username=${sent}\npassword=${tokenOf(login)}\n`))
    }
    for (const host of [
      'id.corp.example',
      'git.corp.example:8443',
      'git.corp.example.evil.example',
    ])
      assert.deepEqual(await call('get', `protocol=https\nhost=${host}\n\n`, corp), {
        code: 0,
        stdout: '',
        stderr: '',
      })
  })

  it('says nothing for other hosts, for plain http, and to store, an erase without a password and what git may add', async () => {
    const before = server.calls.length
    for (const [operation, input] of [
      ['get', 'protocol=https\nhost=gitlab.com\n\n'],
      ['get', 'protocol=http\nhost=github.com\n\n'],
      ['get', 'protocol=https\nhost=github.com.evil.example\n\n'],
      ['get', ''],
      ['store', `${github}username=a\npassword=b\n\n`],
      ['erase', `${github}\n`],
      ['capability', ''],
    ] as const)
      assert.deepEqual(await call(operation, input), { code: 0, stdout: '', stderr: '' })
    assert.equal(server.calls.length, before)
  })

  it('renews the stored token when git erases it, and no other password', async () => {
    const path = '/oauth/tokens/github/access?'
    const origin = 'git_origin=https%3A%2F%2Fgithub.com'
    for (const [password, asked] of [
      ['another', [`${path}${origin}`]],
      [tokenOf('github'), [`${path}${origin}`, `${path}min_validity=2592000&${origin}`]],
    ] as const) {
      const start = server.calls.length
      const input = `${github}username=x-access-token\npassword=${password}\n\n`
      assert.deepEqual(await call('erase', input), { code: 0, stdout: '', stderr: '' })
      const paths = server.calls.slice(start).map(({ path }) => path)
      assert.deepEqual(
        paths.filter((path) => path.includes('/access')),
        asked,
      )
    }
    const elsewhere = `protocol=https\nhost=gitlab.com\npassword=${tokenOf('github')}\n\n`
    const count = server.calls.length
    assert.equal((await call('erase', elsewhere)).code, 0)
    assert.equal(server.calls.length, count)
  })

  it('says which login is needed, and lets git go on', async () => {
    const out = await serve({})
    const { code, stdout, stderr } = await call('get', github, out)
    assert.deepEqual([code, stdout], [4, ''])
    assert.match(stderr, /not logged in to github\nhint: doorward oauth login github\n$/)
  })

  it('knows an Enterprise by gateway.yaml, and then no longer github.com', async () => {
    const enterprise = await serve({ github: {}, work: {} })
    const file = join(enterprise.home.config, 'gateway.yaml')
    await writeFile(
      file,
      'providers:\n  github: { token_endpoint: "https://ghe.example.com/login/oauth/access_token" }\n  work: { dialect: github, issuer: "https://work.example.com" }\n',
    )
    const host = async (name: string) =>
      (await call('get', `protocol=https\nhost=${name}\n`, enterprise)).stdout
    assert.match(await host('ghe.example.com'), new RegExp(`password=${tokenOf('github')}\n`))
    assert.match(await host('work.example.com'), new RegExp(`password=${tokenOf('work')}\n`))
    assert.equal(await host('github.com'), '')
    await writeFile(file, 'providers: { issuer: [')
    const broken = await call('get', github, enterprise)
    assert.deepEqual([broken.code, broken.stdout], [1, ''])
    assert.match(broken.stderr, /hint: doorward config check/)
  })

  it('finds the host of a login wherever YAML lets it stand', async () => {
    const enterprise = await serve({ github: {} })
    const file = join(enterprise.home.config, 'gateway.yaml')
    const endpoint = 'https://ghe.example.com/login/oauth/access_token'
    for (const text of [
      `providers: { github: { client_id: 'a#b', token_endpoint: '${endpoint}' } }\n`,
      `providers: { github: { "token\\x5Fendpoint": '${endpoint}' } }\n`,
    ]) {
      await writeFile(file, text)
      assert.equal((await call('get', `${github}\n`, enterprise)).stdout, '', text)
    }
  })

  describe('with a real git', function () {
    before(function () {
      if (process.platform === 'win32' || spawnSync('git', ['--version']).error) this.skip()
    })

    /** git as a person has it who installed the helper as its help says. */
    const gitWith = async (home: ContractServer['home'], origin: string) => {
      const folder = await temporaryFolder()
      const configuration = join(folder, 'gitconfig')
      const helper = `!'${process.execPath}' '${cliMain}' --home '${home.root}' oauth git-credential`
      await writeFile(configuration, `[credential "${origin}"]\nhelper = "${helper}"\n`)
      const env = gitEnvironment(configuration)
      return async (args: readonly string[], stdin = ''): Promise<CliResult> => {
        const child = spawn('git', args, { cwd: folder, env, stdio: 'pipe' })
        // One that asks nothing may be gone before.
        child.stdin.on('error', () => undefined)
        child.stdin.end(stdin)
        const result = await resultOf(child)
        return { ...result, stdout: result.stdout.replaceAll(folder, '') }
      }
    }

    it('fills it for the account of its setting, and of the URL first', async () => {
      const two = await startTokenServer(
        { github: {}, 'github@work': {} },
        { github: 'octocat', 'github@work': 'ann-at-work' },
      )
      servers.push(two)
      const git = await gitWith(two.home, 'https://github.com')
      const setting = ['-c', 'credential.https://github.com.username=ann-at-work']
      for (const [more, input, login] of [
        [[], github, 'github'],
        [setting, github, 'github@work'],
        [[], 'url=https://ann-at-work@github.com/a/b.git\n', 'github@work'],
        [setting, 'url=https://octocat@github.com/a/b.git\n', 'github'],
      ] as const) {
        const { code, stdout, stderr } = await git([...more, 'credential', 'fill'], `${input}\n`)
        assert.deepEqual([code, stderr], [0, ''])
        assert.ok(stdout.split('\n').includes(`password=${tokenOf(login)}`), stdout)
      }
    })

    it('lists and clones a repository behind HTTP Basic', async () => {
      const repository = await startGitServer(tokenOf('github'))
      try {
        const own = await serve({ github: {} })
        await writeFile(
          join(own.home.config, 'gateway.yaml'),
          `providers: { github: { token_endpoint: "${repository.origin}/token" } }\n`,
        )
        const git = await gitWith(own.home, repository.origin)
        const listed = await git(['ls-remote', repository.url])
        assert.equal(listed.code, 0, listed.stderr)
        assert.match(listed.stdout, /^[\da-f]{40}\trefs\/heads\/main$/m)
        assert.equal((await git(['clone', '--quiet', repository.url, 'copy'])).code, 0)
        const shown = await git(['-C', 'copy', 'show', 'HEAD:hello.txt'])
        assert.equal(shown.stdout, 'hello\n')
        assert.deepEqual([...new Set(repository.logins)], [`x-access-token:${tokenOf('github')}`])
        const remembered = await git(['-C', 'copy', 'config', '--list'])
        assert.ok(!remembered.stdout.includes(tokenOf('github')))
      } finally {
        repository.close()
      }
    })
  })

  it('shows in its help how to install it, as a shell takes it', async () => {
    const { stdout } = await run(['oauth', 'git-credential', '--help'])
    const [command] =
      /git config --global credential\.https:\/\/github\.com\.helper[^']+'[^']+'/.exec(stdout) ?? []
    const configuration = join(await temporaryFolder(), 'gitconfig')
    const env = gitEnvironment(configuration)
    assert.equal(spawnSync('sh', ['-c', command ?? 'false'], { env }).status, 0)
    const text = await readFile(configuration, 'utf8')
    assert.match(text, /helper = !doorward oauth git-credential$/m)
  })
})
