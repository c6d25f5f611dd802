import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { runCli } from '../../../daemon/agents/cli-agent.ts'
import { runCommand } from '../../../daemon/agents/invoke.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import { buildProfile } from '../../../daemon/agents/sandbox/macos.ts'
import { buildSocketFilter } from '../../../daemon/agents/sandbox/linux.ts'
import { defaultLimits } from '../../../shared/agents/limits.ts'
import type { CliAgent, CommandAgent } from '../../../shared/agents/schema.ts'
import { sandboxWarnings } from '../../../shared/sandbox/warnings.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { findSandbox, isUnbounded } from '../../../shared/sandbox/probe.ts'
import { fixtureAgent } from '../../support/fixtures.ts'
import { hasOtherUser, runAsOther } from '../../support/other-user.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/* test/security has a hostile agent in the sandbox, test/agent-clis the real programs. */

const common = { timeout: 30_000, concurrency: 1, output_limit: 1024 * 1024 } as const

const getFailure = async (running: Promise<unknown>): Promise<DoorwardError> => {
  const error = await running.then(
    () => assert.fail('it answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DoorwardError, String(error))
  return error
}

/** A folder with a script of this name. */
const scriptIn = async (folder: string, name: string, text: string): Promise<string> => {
  await mkdir(folder, { recursive: true })
  const path = join(folder, name)
  await writeFile(path, text)
  await chmod(path, 0o755)
  return path
}

describe('a sandbox', function () {
  this.timeout(60_000)
  let person: string

  before(async function () {
    // CI has bubblewrap; elsewhere these tests need it.
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
  })
  beforeEach(async () => {
    person = await temporaryFolder()
  })

  const contextOf = (env: NodeJS.ProcessEnv = {}) => ({
    env: { ...process.env, HOME: person, ...env },
    homeFolder: join(person, '.doorward'),
    run: runProcess,
    getToken: async () => 'token-canary',
    signal: new AbortController().signal,
  })

  const command = async (argv: string[], more: Partial<CommandAgent> = {}, env = {}) =>
    runCommand(
      { kind: 'command', command: argv, ...common, sandbox: 'required', ...more },
      'prompt',
      contextOf(env),
    )

  const cli = async (
    kind: CliAgent['kind'],
    env: NodeJS.ProcessEnv,
    more: Partial<CliAgent> = {},
  ) => runCli({ kind, ...common, sandbox: 'required', ...more }, 'prompt', contextOf(env))

  it('runs a program that npm installed below the home, with its Node and its packages', async () => {
    const prefix = join(person, '.nvm', 'versions', 'node', 'v20')
    const own = join(prefix, 'lib', 'node_modules', '@openai', 'codex')
    await scriptIn(
      join(own, 'bin'),
      'codex.js',
      `#!/usr/bin/env node
const { readdirSync } = require('node:fs')
const text = require('part').name + ' ' + readdirSync(process.env.HOME).join(' ')
console.log(JSON.stringify({ type: 'item.completed', item: { type: 'agent_message', text } }))
console.log(JSON.stringify({ type: 'turn.completed' }))`,
    )
    await scriptIn(join(dirname(own), '..', 'part'), 'index.js', "exports.name = 'part-canary'")
    await mkdir(join(prefix, 'bin'))
    await copyFile(process.execPath, join(prefix, 'bin', 'node'))
    await symlink('../lib/node_modules/@openai/codex/bin/codex.js', join(prefix, 'bin', 'codex'))
    await writeFile(join(person, 'diary.txt'), 'x')
    const { text, note } = await cli('codex', {
      PATH: [join(prefix, 'bin'), process.env['PATH']].join(delimiter),
    })
    assert.match(text, /^part-canary/)
    assert.ok(!text.includes('diary'), text)
    assert.equal(note, undefined)
  })

  it('runs a program in a virtual environment, as those of Python', async () => {
    const venv = join(person, '.local', 'share', 'pipx', 'venvs', 'llm')
    // Node plays Python: what matters is where the files are.
    await scriptIn(
      join(venv, 'bin'),
      'llm',
      `#!${join(venv, 'bin', 'python')}\nconsole.log(require('../lib/part.js').name)\n`,
    )
    await symlink(process.execPath, join(venv, 'bin', 'python'))
    await writeFile(join(venv, 'pyvenv.cfg'), 'home = /usr/bin\n')
    await scriptIn(join(venv, 'lib'), 'part.js', "exports.name = 'part-canary'")
    await mkdir(join(person, '.local', 'bin'), { recursive: true })
    await symlink(join(venv, 'bin', 'llm'), join(person, '.local', 'bin', 'llm'))
    const PATH = [join(person, '.local', 'bin'), process.env['PATH']].join(delimiter)
    assert.equal((await cli('llm', { PATH })).text.trim(), 'part-canary')
  })

  it('runs the Python of a virtual environment that is a link through a folder of another version', async () => {
    const [folder, venv] = [join(person, 'opt'), join(person, 'proj', '.venv')]
    const python = join(venv, 'bin', 'python')
    for (const path of [join(folder, 'py-3.11.7', 'bin'), dirname(python)])
      await mkdir(path, { recursive: true })
    await copyFile(process.execPath, join(folder, 'py-3.11.7', 'bin', 'python3.11'))
    await scriptIn(join(folder, 'py-3.11.7', 'lib'), 'base.js', "exports.name = 'base-canary'")
    await symlink('py-3.11.7', join(folder, 'py-3.11'))
    await scriptIn(join(venv, 'lib'), 'part.js', "exports.name = 'part-canary'")
    await writeFile(join(venv, 'pyvenv.cfg'), `home = ${join(folder, 'py-3.11', 'bin')}\n`)
    const targets = ['py-3.11/bin/python3.11', 'py-3.11.7/bin/python3.11']
    for (const target of targets.map((path) => join(folder, path))) {
      await rm(python, { force: true })
      await symlink(target, python)
      const base = join(dirname(target), '..', 'lib', 'base.js')
      const load = `console.log(require('${venv}/lib/part.js').name, require('${base}').name)\n`
      const tool = await scriptIn(join(venv, 'bin'), 'tool', `#!${python}\n${load}`)
      const agent = await scriptIn(join(person, 'proj'), 'agent.js', load)
      for (const argv of [[python, agent], [tool]])
        assert.equal((await command(argv)).text.trim(), 'part-canary base-canary')
    }
  })

  it('gives a program its login, and no more of what it has stored', async () => {
    const claude = join(person, '.claude')
    await mkdir(join(claude, 'projects'), { recursive: true })
    await writeFile(
      join(claude, '.credentials.json'),
      '{"claudeAiOauth":{"accessToken":"login-canary"},"mcpOAuth":{"a":{}}}',
    )
    await writeFile(join(claude, 'history.jsonl'), 'history-canary')
    await writeFile(
      join(person, '.claude.json'),
      '{"primaryApiKey":"key-canary","projects":{"/secret":{}},"mcpServers":{"a":{}}}',
    )
    const programs = join(person, 'bin')
    await scriptIn(
      programs,
      'claude',
      `#!${process.execPath}
const { readFileSync, readdirSync, writeFileSync } = require('node:fs')
const folder = process.env.CLAUDE_CONFIG_DIR + '/'
const seen = [readFileSync(folder + '.credentials.json', 'utf8'), readFileSync(folder + '.claude.json', 'utf8'), readdirSync(folder), readdirSync(process.env.HOME)]
writeFileSync(folder + 'session.jsonl', 'x')
console.log(JSON.stringify({ type: 'result', is_error: false, result: JSON.stringify(seen) }))`,
    )
    const { text } = await cli('claude', { PATH: [programs, process.env['PATH']].join(delimiter) })
    assert.deepEqual(JSON.parse(text), [
      '{"claudeAiOauth":{"accessToken":"login-canary"}}',
      '{"primaryApiKey":"key-canary"}',
      ['.claude.json', '.credentials.json'],
      ['bin'],
    ])
    await assert.rejects(readFile(join(claude, 'session.jsonl')), { code: 'ENOENT' })
  })

  it('shows the files that the words and variables of an agent name', async () => {
    const file = join(person, 'notes.txt')
    await writeFile(file, 'notes-canary')
    assert.equal((await command(['cat', file])).text, 'notes-canary')
    const agent = { env: { NOTES: file } }
    assert.equal((await command(['sh', '-c', 'cat "$NOTES"'], agent)).text, 'notes-canary')
    const hidden = await getFailure(command(['sh', '-c', `cat ${file}`]))
    assert.match(hidden.localDetail ?? '', /No such file or directory/)
  })

  it('has its own folder for temporary files, whatever that of the machine', async () => {
    const { text } = await command(['sh', '-c', 'mktemp'], {}, { TMPDIR: join(person, 'tmp') })
    assert.match(text, /^\/tmp\//)
  })

  it('says that there is no such program as it does without one', async () => {
    const error = await getFailure(command(['no-such-program']))
    assert.deepEqual(
      [error.code, error.message.slice(0, 28)],
      ['agent-not-found', 'cannot start no-such-program'],
    )
    const folder = await getFailure(command(['true'], { cwd: join(person, 'none') }))
    assert.match(folder.message, /cannot start true: its cwd .* does not exist/)
  })

  it('is stopped in time with everything in it', async () => {
    const error = await getFailure(command(['sh', '-c', 'sleep 1000 & wait'], { timeout: 1000 }))
    assert.equal(error.code, 'agent-timeout')
  })

  describe('that is missing', () => {
    const withoutBwrap = async () => {
      const folder = await temporaryFolder()
      await symlink(process.execPath, join(folder, 'node'))
      await symlink('/bin/echo', join(folder, 'echo'))
      return { PATH: folder }
    }

    it('is noted by auto, and refused by required and network: off', async () => {
      const env = await withoutBwrap()
      const noted = await command(['echo', 'hi'], { sandbox: 'auto', network: 'open' }, env)
      assert.equal(noted.note, undefined)
      const programs = env.PATH
      await scriptIn(
        programs,
        'claude',
        `#!${process.execPath}\nconsole.log(JSON.stringify({ type: 'result', is_error: false, result: 'ok' }))`,
      )
      const { note } = await cli('claude', env, { sandbox: 'auto', tools: 'read' })
      assert.equal(note, "there was no sandbox: bubblewrap (bwrap) is not on doorward's PATH")
      for (const more of [{ sandbox: 'required' }, { sandbox: 'auto', network: 'off' }] as const) {
        const error = await getFailure(command(['echo', 'hi'], more, env))
        assert.equal(error.code, 'sandbox-unavailable')
        assert.match(error.localDetail ?? '', /bwrap.* is not on .* \(install it: sudo apt install/)
      }
    })

    it('is told from one that the system forbids', async () => {
      const env = await withoutBwrap()
      await scriptIn(
        env.PATH,
        'bwrap',
        `#!${process.execPath}\nconsole.error('bwrap: setting up uid map: Permission denied'); process.exit(1)`,
      )
      const error = await getFailure(command(['echo', 'hi'], {}, env))
      assert.match(
        error.localDetail ?? '',
        /lets .*bwrap create no namespaces: bwrap: setting up uid map: Permission denied \(allow user namespaces/,
      )
    })

    it('is noticed where there are no more user namespaces', async () => {
      const probe = new URL('../../../shared/sandbox/probe.js', import.meta.url).href
      const script = `console.log(JSON.stringify(await (await import(process.argv[1])).findSandbox(process.env)))`
      const { stdout } = await promisify(execFile)(
        'bwrap',
        [
          '--unshare-user --disable-userns --ro-bind / / --dev /dev --proc /proc'.split(' '),
          [process.execPath, '--input-type=module', '-e', script, probe],
        ].flat(),
      )
      const { missing } = JSON.parse(stdout) as { missing?: string }
      assert.match(missing ?? '', /^this system lets \S+ create no namespaces: bwrap: Creating new/)
    })

    it('is not made for a folder that contains the home', async () => {
      const inHome = { cwd: person, sandbox: 'required' } as const
      const error = await getFailure(command(['echo', 'hi'], inHome))
      assert.match(error.message, /its cwd .* contains your home folder, or doorward's/)
    })

    it('is a warning of config check, with what is dangerous without it', async () => {
      const check = (agent: string) => {
        const config = checkConfig(
          readYaml('gateway.yaml', ''),
          readYaml('agents.yaml', `agents: { a: { ${agent} } }`),
          readYaml(
            'webhooks.yaml',
            `webhooks: [{ path: /a, agent: a, prompt_template: '{{event.x}}', deliver_to: 'slack:#a' }]`,
          ),
          {},
        )
        return async (env: NodeJS.ProcessEnv) => sandboxWarnings(config, env, person)
      }
      const bare = await withoutBwrap()
      const reads = check('kind: claude, tools: read')
      const found = (await reads(process.env)).map(({ code }) => code)
      assert.deepEqual(found, isUnbounded() ? ['sandbox-unbounded'] : [])
      const [missing, risk] = await reads(bare)
      assert.equal(
        missing?.detail,
        "agent a runs without a sandbox: bubblewrap (bwrap) is not on doorward's PATH",
      )
      assert.match(risk?.detail ?? '', /may read files of yours, as it is in no sandbox/)
      const [refused, ...others] = await check('kind: claude, sandbox: required')(bare)
      assert.match(refused?.detail ?? '', /^agent a is not run without a sandbox/)
      assert.deepEqual(others, [])
    })
  })

  it('holds for an ordinary user as for root', async function () {
    if (!hasOtherUser()) this.skip()
    const invoke = new URL('../../../daemon/agents/', import.meta.url)
    const [fixture] = fixtureAgent('breaks-out').slice(1)
    let seen: Record<string, unknown>
    try {
      seen = await runAsOther(
        `import { mkdtempSync, writeFileSync } from 'node:fs'
         const [invoke, processes, fixture] = process.argv.slice(-3)
         const { runCommand } = await import(invoke)
         const { runProcess } = await import(processes)
         const home = mkdtempSync('/tmp/doorward-test-other-')
         writeFileSync(home + '/key', 'key-canary')
         const plan = { read: [home + '/key', '/proc/' + process.pid + '/environ'], write: ['/usr/x', home + '/x'] }
         const { text } = await runCommand(
           { kind: 'command', command: [process.execPath, fixture, JSON.stringify(plan)], timeout: 20000, concurrency: 1, output_limit: 100000, sandbox: 'required' },
           '',
           { env: { ...process.env, HOME: home }, homeFolder: home + '/.doorward', run: runProcess, signal: new AbortController().signal },
         )
         console.log(text)`,
        new URL('invoke.js', invoke).href,
        new URL('process.js', invoke).href,
        fixture ?? '',
      )
    } catch (error) {
      // The other user may not read this checkout.
      if (/EACCES|ERR_MODULE_NOT_FOUND/.test(String(error))) this.skip()
      throw error
    }
    const outcomes = Object.entries(seen).map(
      ([what, outcome]) => `${what.split(' ')[0]} ${String(outcome)}`,
    )
    assert.deepEqual(outcomes.slice(0, 4), [
      'read ENOENT',
      'read ENOENT',
      'write EROFS',
      'write written',
    ])
  })
})

describe('the filter of system calls', () => {
  it('is known for the usual processors', () => {
    for (const arch of ['x64', 'arm64', 'arm', 'riscv64'])
      assert.equal(buildSocketFilter(arch)?.length, 17 * 8)
    assert.equal(buildSocketFilter('mips'), undefined)
  })

  it('refuses sockets of Unix and of virtual machines, keys of the kernel, io_uring, tracing the first process, and calls of another machine', () => {
    const filter = buildSocketFilter('x64') ?? Buffer.alloc(0)
    const [allow, eperm, enosys] = [0x7fff0000, 0x50001, 0x50026]
    const ask = (call: number, argument = 0, arch = 0xc000003e, second = 0): number => {
      const values = [call, arch, argument, second]
      const data = new Map([0, 4, 16, 24].map((at, index) => [at, values[index]]))
      let value = 0
      for (let place = 0; place < filter.length; place += 8) {
        const [code, operand] = [filter.readUInt16LE(place), filter.readUInt32LE(place + 4)]
        if (code === 0x06) return operand
        if (code === 0x20) value = data.get(operand) ?? 0
        else {
          const isTrue = code === 0x15 ? value === operand : value >= operand
          place += filter.readUInt8(place + (isTrue ? 2 : 3)) * 8
        }
      }
      return assert.fail('it has no end')
    }
    const [ptrace, attach] = [101, 16]
    const traces = (pid: number) => ask(ptrace, attach, undefined, pid)
    assert.deepEqual([traces(1), traces(2), ask(ptrace)], [eperm, allow, allow])
    const [socket, socketpair, addKey, requestKey, keyctl, after] = [41, 53, 248, 249, 250, 251]
    assert.deepEqual([ask(socket, 1), ask(socket, 40)], [eperm, eperm])
    assert.deepEqual([ask(socket, 2), ask(socketpair, 1)], [allow, allow])
    for (const call of [addKey, requestKey, keyctl, 425]) assert.equal(ask(call), enosys)
    for (const call of [0, addKey - 1, after, 435]) assert.equal(ask(call), allow)
    assert.deepEqual([ask(0, 0, 0x40000003), ask(0x40000000)], [eperm, eperm])
  })
})

describe('the profile for macOS', () => {
  it('hides the homes, opens what the run needs, and quotes every path', () => {
    const profile = buildProfile({
      sandbox: '/usr/bin/sandbox-exec',
      argv: ['claude'],
      cwd: '/Users/me/a "b"',
      network: { ports: [] },
      limits: defaultLimits,
      unset: [],
      userHome: '/Users/me',
      doorwardHome: '/Users/me/.doorward',
      empty: [],
      links: new Map(),
      read: ['/Users/me/a "b"'],
      hidden: ['/Users/me/a "b"/.opencode'],
      write: new Map([['/private/tmp/run', '/private/tmp/run']]),
    })
    assert.match(profile, /\(deny file-read\* .*\(subpath "\/Users\/me\/\.doorward"\)\)/)
    assert.match(profile, /\(allow file-read\* \(subpath "\/Users\/me\/a \\"b\\""\)/)
    assert.match(profile, /\(allow file-write\* \(subpath "\/private\/tmp\/run"\)\)/)
    assert.match(profile, /\(deny file\* \(subpath "\/Users\/me\/a \\"b\\"\/\.opencode"\)\)/)
    assert.match(profile, /\(deny network\*\)/)
  })
})
