import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { runCli } from '../../../daemon/agents/cli-agent.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import type { CliAgent } from '../../../shared/agents/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { temporaryFolder } from '../../support/temporary.ts'

/* test/agent-clis runs the real programs; these are scripts of the same names. */

const makeAgent = (kind: CliAgent['kind'], more: Partial<CliAgent> = {}): CliAgent => ({
  kind,
  timeout: 15_000,
  concurrency: 1,
  output_limit: 1024,
  ...more,
})

/** A folder with a program of this name that is a script of Node. */
const programFolder = async (name: string, script: string): Promise<string> => {
  const folder = await temporaryFolder()
  await writeFile(join(folder, name), `#!${process.execPath}\n${script}\n`)
  await chmod(join(folder, name), 0o755)
  return folder
}

const run = (agent: CliAgent, programs: string, env: NodeJS.ProcessEnv = {}) =>
  runCli(agent, 'the prompt', {
    env: { PATH: programs, ...env },
    run: runProcess,
    homeFolder: '/nowhere',
    getToken: async () => 'token-canary',
    signal: new AbortController().signal,
  })

const getFailure = async (running: Promise<unknown>): Promise<DoorwardError> => {
  const error = await running.then(
    () => assert.fail('it answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DoorwardError, String(error))
  return error
}

const printsContext = `const { readFileSync } = require('node:fs')
console.log(JSON.stringify({ args: process.argv.slice(2), stdin: readFileSync(0, 'utf8'), env: process.env, cwd: process.cwd() }))`

describe('an agent program that doorward knows', () => {
  it('gets the prompt on standard input, and its own folders, which are removed', async () => {
    const { text } = await run(
      makeAgent('llm', { args: ['-m', 'x'], output_limit: 100_000 }),
      await programFolder('llm', printsContext),
      {
        HOME: '/nowhere',
        LLM_USER_PATH: '/llm',
        OPENAI_API_KEY: 'secret-canary',
      },
    )
    const output = JSON.parse(text) as {
      args: string[]
      stdin: string
      cwd: string
      env: Record<string, string>
    }
    assert.deepEqual(output.args, ['prompt', '-n', '--no-stream', '-m', 'x'])
    assert.equal(output.stdin, 'the prompt')
    assert.deepEqual([output.env['HOME'], output.env['LLM_USER_PATH']], ['/nowhere', '/llm'])
    assert.ok(!text.includes('secret-canary'))
    assert.match(output.env['TMPDIR'] ?? '', /doorward-agent-/)
    for (const place of [output.cwd, output.env['TMPDIR'] ?? ''])
      await assert.rejects(readdir(place), { code: 'ENOENT' })
  })

  it('gets what its entry sets over what doorward sets', async () => {
    const programs = await programFolder(
      'opencode',
      `console.log(JSON.stringify({ type: 'text', part: { messageID: '1', text: process.env.OPENCODE_PERMISSION + process.env.OPENCODE_DB } }))`,
    )
    assert.equal((await run(makeAgent('opencode'), programs)).text, '{"*":"deny"}:memory:')
    const own = makeAgent('opencode', { env: { OPENCODE_PERMISSION: 'mine' } })
    assert.equal((await run(own, programs)).text, 'mine:memory:')
    assert.equal(
      (await run(makeAgent('opencode', { args: ['--auto'] }), programs)).text,
      'undefined:memory:',
    )
  })

  it('is reported as missing with the command that installs it', async () => {
    const error = await getFailure(run(makeAgent('codex'), await temporaryFolder()))
    assert.equal(error.code, 'agent-not-found')
    assert.match(
      error.localDetail ?? '',
      /no such program on the daemon's PATH \(install it with: npm install -g @openai\/codex;/,
    )
  })

  it('is cut at its output limit, in characters of the answer and not of its JSON', async () => {
    const script = (length: number) =>
      `console.log(JSON.stringify({ type: 'result', is_error: false, result: '\\u0001'.repeat(${length}) }))`
    const whole = await run(makeAgent('claude'), await programFolder('claude', script(1024)))
    assert.deepEqual([whole.cut, whole.text.length], [false, 1024])
    const cut = await run(makeAgent('claude'), await programFolder('claude', script(1025)))
    assert.ok(cut.cut && cut.text.endsWith('\n[cut: longer than 1024 bytes]'))
  })

  it('reports its own words when it fails, without a token and with the way to log in', async () => {
    const script = `console.log(JSON.stringify({ type: 'turn.failed', error: { message: '401 with ' + process.env.T } })); process.exitCode = 1`
    const agent = makeAgent('codex', { env: { T: 'oauth:github' } })
    const error = await getFailure(run(agent, await programFolder('codex', script)))
    assert.deepEqual([error.code, error.message], ['agent-failed', 'codex exited with code 1'])
    assert.match(
      error.localDetail ?? '',
      /^codex exited with code 1: 401 with <token of github> \(run: codex login; with /,
    )
  })

  it('reports its last lines of standard error when it prints nothing readable', async () => {
    const script = `console.error('no model'); console.log('hm')`
    const error = await getFailure(run(makeAgent('claude'), await programFolder('claude', script)))
    assert.equal(error.localDetail, 'claude exited without a readable answer: no model')
  })

  describe('of the name gemini', () => {
    const shows = `const { readFileSync, readdirSync } = require('node:fs')
const home = process.env.GEMINI_CLI_HOME + '/.gemini'
console.log(JSON.stringify({ response: JSON.stringify({ home, files: readdirSync(home).sort(), settings: JSON.parse(readFileSync(home + '/settings.json', 'utf8')) }) }))`

    it('has a home of its own with a copy of settings and logins, but no history', async () => {
      const home = await temporaryFolder()
      await mkdir(join(home, '.gemini', 'tmp'), { recursive: true })
      await writeFile(
        join(home, '.gemini', 'settings.json'),
        '{ "model": { "name": "m" }, /* x */ "tools": { "core": ["y"] } } // z',
      )
      await writeFile(join(home, '.gemini', 'oauth_creds.json'), '{}')
      await writeFile(join(home, '.gemini', 'history.jsonl'), 'x')
      const programs = await programFolder('gemini', shows)
      const { text } = await run(makeAgent('gemini'), programs, { HOME: home })
      const output = JSON.parse(text) as {
        home: string
        files: string[]
        settings: Record<string, unknown>
      }
      assert.deepEqual(output.files, ['oauth_creds.json', 'settings.json'])
      const { model, tools } = output.settings
      assert.deepEqual([model, tools], [{ name: 'm' }, { core: [] }])
      await assert.rejects(readFile(join(output.home, 'settings.json')), { code: 'ENOENT' })
    })

    it('has one though the person has no settings', async () => {
      const programs = await programFolder('gemini', shows)
      const { text } = await run(makeAgent('gemini'), programs, { HOME: await temporaryFolder() })
      assert.deepEqual((JSON.parse(text) as { files: string[] }).files, ['settings.json'])
    })
  })

  it('is searched on the PATH of its entry', async () => {
    const programs = await programFolder('llm', `console.log('found')`)
    const agent = makeAgent('llm', { env: { PATH: [programs, '/usr/bin'].join(delimiter) } })
    assert.equal((await run(agent, '/nowhere')).text, 'found')
  })
})
