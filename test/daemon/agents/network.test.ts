import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { runCommand } from '../../../daemon/agents/invoke.ts'
import { dial, Refused } from '../../../daemon/agents/network/reach.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import { type HostRule, parseHostRule } from '../../../shared/agents/network.ts'
import type { CommandAgent } from '../../../shared/agents/schema.ts'
import type { RunInput } from '../../../shared/api/api.ts'
import { classifyAddress } from '../../../shared/network/addresses.ts'
import { findSandbox } from '../../../shared/sandbox/probe.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/* test/agent-clis has the real programs, test/security what a hostile one tries. */

const rulesOf = (...texts: readonly string[]): HostRule[] =>
  texts.map((text) => parseHostRule(text) ?? assert.fail(text))

describe('addresses', () => {
  it('are told apart, also where IPv6 stands for IPv4', () => {
    const kinds: Readonly<Record<string, readonly string[]>> = {
      metadata: [
        '169.254.169.254',
        '169.254.170.2',
        '::ffff:169.254.169.254',
        '::ffff:a9fe:a9fe',
        '64:ff9b::169.254.169.254',
        '64:ff9b:1::a9fe:a9fe',
        '2002:a9fe:a9fe::1',
        '::169.254.169.254',
        'fd00:ec2::254',
        'fe80::1',
        'fe80::1%eth0',
        'fd20:ce::254',
        '100.100.100.200',
        'metadata.google.internal',
      ],
      loopback: ['127.0.0.1', '127.9.9.9', '::1', '::', '0.0.0.0', '::ffff:127.0.0.1'],
      private: [
        '10.1.2.3',
        '172.31.0.1',
        '192.168.1.1',
        '100.64.0.1',
        'fd12::1',
        '::ffff:10.0.0.1',
      ],
      public: ['1.1.1.1', '172.32.0.1', '169.253.0.1', '2606:4700::1111', '::ffff:1.1.1.1'],
    }
    for (const [kind, addresses] of Object.entries(kinds))
      for (const address of addresses) assert.equal(classifyAddress(address), kind, address)
  })
})

describe('rules for hosts', () => {
  it('are hosts with a port or without, and nothing else', () => {
    const read = (text: string) => {
      const rule = parseHostRule(text)
      return rule && [rule.isDomain ? `*.${rule.host}` : rule.host, ...rule.ports].join(' ')
    }
    const known = {
      'example.com': 'example.com 80 443',
      '*.Example.COM': '*.example.com 80 443',
      'localhost:8080': 'localhost 8080',
      '[::1]:80': '::1 80',
      '0x7f.1:99': '127.0.0.1 99',
      'xn--bcher-kva.example': 'xn--bcher-kva.example 80 443',
    }
    for (const [text, rule] of Object.entries(known)) assert.equal(read(text), rule)
    const wrong = ['', '*', '*.', 'a b', 'http://a', 'a/b', 'a:b', 'a:99999', 'u@a', '*.1.2.3.4']
    for (const text of [...wrong, 'a?b', 'a*.com', '::1']) assert.equal(read(text), undefined, text)
  })
})

describe('what a run may reach', () => {
  const refuses = async (mode: 'model' | 'open', rules: HostRule[], host: string, to: string) => {
    const resolve = async () => [{ address: to, family: to.includes(':') ? 6 : 4 }]
    await assert.rejects(
      dial({ mode, rules, env: {}, resolve }, host, 443),
      Refused,
      `${host} ${to}`,
    )
  }

  it('are no addresses of metadata, whatever the mode and the name', async () => {
    const named = rulesOf('rebinds.example.com', '169.254.169.254', 'metadata.google.internal')
    for (const address of ['169.254.169.254', '::ffff:a9fe:a9fe', '64:ff9b::a9fe:a9fe'])
      for (const mode of ['model', 'open'] as const)
        await refuses(mode, named, 'rebinds.example.com', address)
    await refuses('open', [], '169.254.169.254', '1.2.3.4')
    await refuses('open', [], 'metadata.google.internal', '1.2.3.4')
    await refuses('model', named, 'metadata.google.internal', '1.2.3.4')
  })

  it('are this machine and its network only where the owner names them', async () => {
    await refuses('model', rulesOf('rebinds.example.com'), 'rebinds.example.com', '127.0.0.1')
    await refuses('model', rulesOf('*.example.com'), 'rebinds.example.com', '10.0.0.5')
    await refuses('model', rulesOf('*.example.com'), 'example.com', '1.2.3.4')
    await refuses('model', rulesOf('example.com:8443'), 'example.com', '1.2.3.4')
    await refuses('model', rulesOf('example.com'), 'notexample.com', '1.2.3.4')
  })
})

describe('the network of a sandbox', function () {
  this.timeout(60_000)
  let person: string
  let web: Server
  let port: number
  let hosts: string[]
  const closing: { close: () => unknown }[] = []

  before(async function () {
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    person = await temporaryFolder()
    hosts = []
    web = createServer((request, response) => {
      hosts.push(`${request.method} ${request.headers.host} ${JSON.stringify(request.rawHeaders)}`)
      request.pipe(response)
    }).listen(0, '127.0.0.1')
    await once(web, 'listening')
    port = (web.address() as AddressInfo).port
    closing.push(web)
  })
  after(() => {
    web.closeAllConnections()
    for (const one of closing) one.close()
  })

  /** Runs a shell command; returns what it printed and the sandbox of its event. */
  const run = async (script: string, more: Partial<CommandAgent>, env: NodeJS.ProcessEnv = {}) => {
    let sandbox: RunInput['sandbox']
    const agent: CommandAgent = {
      kind: 'command',
      command: ['sh', '-c', script],
      timeout: 30_000,
      concurrency: 1,
      output_limit: 100_000,
      sandbox: 'required',
      ...more,
    }
    const { text } = await runCommand(agent, 'prompt', {
      env: { ...process.env, HOME: person, ...env },
      homeFolder: join(person, '.doorward'),
      run: runProcess,
      getToken: async () => 'none',
      signal: new AbortController().signal,
      confined: (made) => (sandbox = made),
    })
    return { text: text.trim(), sandbox }
  }

  /** The status of the answer, and of the proxy to CONNECT. */
  const fetches = (url: string) =>
    `curl -s --max-time 10 -o /dev/null -w '%{http_code} %{http_connect}' ${url}; echo`

  it('reaches what its owner allows, by both forms of a proxy, and names what was refused', async () => {
    const { text, sandbox } = await run(
      `curl -s -d 'a body' http://localhost:${port}/x; echo
       curl -s -p -d 'through a tunnel' http://localhost:${port}/x; echo
       ${fetches('http://other.example.com/')}; ${fetches('https://evil.example.com/')}
       ${fetches('http://169.254.169.254/latest/meta-data/')}; ${fetches('http://[::ffff:a9fe:a9fe]/')}
       ${fetches("--noproxy '*' http://1.1.1.1/")}; ${fetches("--noproxy '*' http://example.com/")}
       cat; echo; echo $HTTPS_PROXY $NODE_CHANNEL_FD; ls /proc/self/fd | grep -v 251 | tr '\n' ' '`,
      { network: { allow: [`localhost:${port}`] } },
    )
    assert.deepEqual(text.split('\n'), [
      'a body',
      'through a tunnel',
      '403 000',
      '000 403',
      '403 000',
      '403 000',
      '000 000',
      '000 000',
      'prompt',
      'http://127.0.0.1:3128',
      '0 1 2 3',
    ])
    const { unbounded: _, ...known } = sandbox ?? {}
    assert.deepEqual(known, {
      kind: 'bwrap',
      network: 'model',
      refused: [
        'other.example.com:80',
        'evil.example.com:443',
        '169.254.169.254:80',
        '::ffff:a9fe:a9fe:80',
      ],
    })
    // Nothing of the proxy's own goes on, and no header for it.
    assert.ok(
      hosts.every((request) => !/proxy|doorward/i.test(request)),
      hosts.join('\n'),
    )
  })

  it('has a port of this machine under its own number, whatever its protocol', async () => {
    const database = createTcpServer((socket) => socket.end('a row\n')).listen(0, '127.0.0.1')
    closing.push(database)
    await once(database, 'listening')
    const at = (database.address() as AddressInfo).port
    const read = `exec 5<>/dev/tcp/127.0.0.1/${at}; cat <&5`
    const { text } = await run(`bash -c '${read}'`, { network: { allow: [`localhost:${at}`] } })
    assert.equal(text, 'a row')
    // A word of the agent's names it.
    const open = await run(`bash -c '${read}' http://localhost:${at}`, { network: 'open' })
    assert.equal(open.text, 'a row')
  })

  it('is open but for metadata', async () => {
    const { text, sandbox } = await run(
      `${fetches(`http://localhost:${port}/`)}
       ${fetches('http://169.254.169.254/')}; ${fetches('https://169.254.170.2/')}
       ${fetches("--noproxy '*' http://169.254.169.254/")}`,
      { network: 'open' },
    )
    assert.deepEqual(text.split('\n'), ['200 000', '403 000', '000 403', '000 000'])
    assert.deepEqual(sandbox?.network, 'open')
  })

  it('leads through the proxy that the agent has outside', async () => {
    const seen: string[] = []
    const company = createServer().on('connect', (request, socket) => {
      seen.push(`${request.url} ${request.headers['proxy-authorization']}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    company.listen(0, '127.0.0.1')
    closing.push(company)
    await once(company, 'listening')
    const HTTPS_PROXY = `http://me:secret@127.0.0.1:${(company.address() as AddressInfo).port}`
    const network = { allow: ['*.example.com'] }
    const script = `${fetches('https://a.example.com/')}; env | grep -ci secret; true`
    const { text, sandbox } = await run(script, { network }, { HTTPS_PROXY })
    // The password stays outside.
    assert.deepEqual(text.split('\n'), ['000 502', '0'])
    assert.deepEqual(seen, [`a.example.com:443 Basic ${btoa('me:secret')}`])
    assert.equal(sandbox?.refused, undefined)
  })

  it('keeps exit codes and signals of the program, and ends with it', async () => {
    const failing = run('echo words >&2; exit 7', { network: 'open' })
    await assert.rejects(failing, /exited with code 7/)
    const { text } = await run(`kill -9 $PPID 2>&1; echo here`, { network: 'open' }).catch(
      (error: unknown) => ({ text: String(error) }),
    )
    assert.match(text, /here|was killed|exited with/)
  })
})
