import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { parse } from 'plist'
import { type Home, resolveHome } from '../../../shared/home/home.ts'
import { daemonItems, trayItem } from '../../../shared/service/items.ts'
import { markerLine, readMarker, startupScript } from '../../../shared/service/units.ts'
import type { ServiceContext } from '../../../shared/service/platform.ts'
import { nodeOptions } from '../../../shared/client/spawn.ts'

const names = [
  'plain',
  'with space',
  `"quoted" 'both'`,
  '100% %h %%',
  '$HOME $$ `id` $(id)',
  'back\\slash \\n',
  '<b>&amp;</b> ]]> -->',
  'é 日本 😀',
]

const at = (name: string, more: Partial<ServiceContext> = {}): [Home, ServiceContext] => [
  resolveHome(posix.join('/home', name, '.doorward')),
  {
    platform: 'darwin',
    env: { PATH: `/opt/${name}:/usr/bin` },
    userHome: posix.join('/home', name),
    uid: 501,
    node: posix.join('/opt', name, 'node'),
    packageRoot: posix.join('/opt', name),
    systemd: undefined,
    ...more,
  },
]

/** Parses Exec by the Desktop Entry Specification: escapes of a string, then quotes. */
const parseExec = (entry: string): string[] => {
  const raw = /^Exec=(.*)$/m.exec(entry)?.[1] ?? ''
  const escapes: Record<string, string> = { s: ' ', n: '\n', t: '\t', r: '\r', '\\': '\\' }
  const text = raw.replaceAll(/\\(.)/g, (_, letter: string) => escapes[letter] ?? '?')
  return [...text.matchAll(/"((?:[^"\\`$]|\\["`$\\])*)"(?: |$)/g)].map(([, word = '']) =>
    word.replaceAll(/\\(.)/g, '$1').replaceAll('%%', '%'),
  )
}

describe('login items: formats', () => {
  for (const name of names) {
    const title = JSON.stringify(name)
    it(`keeps ${title} in a property list`, () => {
      const [home, context] = at(name)
      const [daemon] = daemonItems(home, context, 120_000)
      assert.deepEqual(parse(daemon.text), {
        Label: 'local.doorward.daemon',
        ProgramArguments: [
          `/opt/${name}/node`,
          ...nodeOptions,
          `/opt/${name}/dist/bin/doorward-daemon-under-launchd.cjs`,
          '--home',
          home.root,
        ],
        EnvironmentVariables: { PATH: `/opt/${name}:/usr/bin`, DOORWARD_SERVICE: 'launchd' },
        RunAtLoad: true,
        KeepAlive: { SuccessfulExit: false },
        ThrottleInterval: 10,
        ExitTimeOut: 150,
        ProcessType: 'Standard',
        Umask: 63,
        StandardErrorPath: `${home.logs}/daemon.stderr`,
      })
      const tray = parse(trayItem(home, context).text) as Record<string, unknown>
      assert.deepEqual(tray['KeepAlive'], { Crashed: true })
      assert.equal(readMarker(daemon.text)?.home, home.root)
    })

    it(`keeps ${title} in a desktop entry`, () => {
      const [home, context] = at(name, { platform: 'linux' })
      const program = `/opt/${name}/dist/tray/main.js`
      const { text } = trayItem(home, context)
      assert.deepEqual(parseExec(text), [
        `/opt/${name}/node`,
        program,
        '--home',
        home.root,
        '--wait',
      ])
      assert.deepEqual(readMarker(text), {
        node: `/opt/${name}/node`,
        program,
        home: home.root,
      })
    })

    it(`keeps ${title} in a marker that cannot end a comment`, () => {
      const marker = { node: name, program: `--${name}--`, home: '---' }
      const line = markerLine(marker)
      assert.doesNotMatch(line, /--|[\n\r]/)
      assert.deepEqual(readMarker(`<!-- ${line} -->\nmore } -->\n`), marker)
      assert.deepEqual(readMarker(`# ${line}\r\nmore`), marker)
    })
  }

  it('keeps proxies and certificates in every format, but no password', () => {
    const env = {
      HTTPS_PROXY: 'http://proxy:3128/%41',
      http_proxy: 'http://me:canary@proxy',
      NO_PROXY: '*.corp.example, 10.0.0.0/8',
      NODE_EXTRA_CA_CERTS: '/etc/corp ca.pem',
    }
    const kept = {
      HTTPS_PROXY: env.HTTPS_PROXY,
      NO_PROXY: env.NO_PROXY,
      NODE_EXTRA_CA_CERTS: env.NODE_EXTRA_CA_CERTS,
    }
    const [home, mac] = at('x', { env })
    const [agent] = daemonItems(home, mac, 0)
    const variables = (parse(agent.text) as { EnvironmentVariables: object }).EnvironmentVariables
    assert.deepEqual({ ...variables, ...kept }, variables)
    const [unit] = daemonItems(home, { ...mac, platform: 'linux', systemd: 252 }, 0)
    assert.match(
      unit.text,
      /^Environment="HTTPS_PROXY=http:\/\/proxy:3128\/%%41"\nEnvironment="NO_PROXY=/m,
    )
    const [entry] = daemonItems(home, { ...mac, platform: 'linux' }, 0)
    const words = Object.entries(kept).map(([name, value]) => `${name}=${value}`)
    assert.deepEqual(parseExec(entry.text).slice(0, 5), ['/usr/bin/env', ...words, '/opt/x/node'])
    const [script] = daemonItems(home, { ...mac, platform: 'win32' }, 0)
    assert.match(script.text, /\("HTTPS_PROXY"\) = "http:\/\/proxy:3128\/%41"\r\n/)
    for (const { text } of [agent, unit, entry, script]) {
      assert.doesNotMatch(text, /canary/)
    }
  })

  it('writes a script for Windows whose words survive', () => {
    const argv = [
      'C:\\Program Files\\nodejs\\node.exe',
      'C:\\100%TEMP%\\é.js',
      'D:\\ends with\\',
    ] as const
    const script = startupScript({
      marker: { node: argv[0], program: argv[1], home: 'x' },
      argv,
      network: { NO_PROXY: 'a "b" %c%' },
    })
    assert.deepEqual(script.split('\r\n').slice(1), [
      'Set shell = CreateObject("WScript.Shell")',
      'shell.Environment("PROCESS")("NO_PROXY") = "a ""b"" %c%"',
      `shell.Environment("PROCESS")("DOORWARD_WORD_1") = """C:\\100%TEMP%\\é.js"""`,
      `shell.Run """C:\\Program Files\\nodejs\\node.exe"" %DOORWARD_WORD_1% ""D:\\ends with\\\\""", 0, False`,
      '',
    ])
  })

  it('puts the scripts of Windows into the Startup folder, in UTF-16', () => {
    const userHome = 'C:\\Users\\p'
    const home = { ...resolveHome('/x'), root: `${userHome}\\.doorward` }
    const [, context] = at('x', { platform: 'win32', userHome, env: {} })
    const item = trayItem(home, context)
    assert.equal(
      item.path,
      `${userHome}\\AppData\\Roaming\\Microsoft\\Windows\\Start Menu\\Programs\\Startup\\doorward-tray.vbs`,
    )
    assert.equal(item.encoding, 'utf16le')
    assert.equal(item.text.codePointAt(0), 0xfeff)
  })

  it('gives the items of another home a unique name', () => {
    const [, context] = at('p', { platform: 'linux', systemd: 252 })
    const getPath = (root: string) => daemonItems(resolveHome(root), context, 0)[0].path
    assert.equal(getPath('/home/p/.doorward'), '/home/p/.config/systemd/user/doorward.service')
    assert.match(getPath('/srv/one'), /\/doorward-[0-9a-f]{8}\.service$/)
    assert.notEqual(getPath('/srv/one'), getPath('/srv/two'))
  })

  it('refuses a name that no format can contain', () => {
    const [home, context] = at('two\nlines')
    assert.throws(() => trayItem(home, context), { code: 'login-item-failed' })
  })

  it('gives a stop more time than the daemon drains', () => {
    const [home, context] = at('p', { platform: 'linux', systemd: 254 })
    const textFor = (drainMs: number) => daemonItems(home, context, drainMs)[0].text
    assert.match(textFor(30_000), /^TimeoutStopSec=90$/m)
    assert.match(textFor(600_000), /^TimeoutStopSec=630$/m)
    assert.match(textFor(0), /^RestartMaxDelaySec=30$/m)
  })
})
