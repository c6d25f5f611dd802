import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { version } from '../../shared/version.ts'
import { run } from './support/cli.ts'

describe('cli: usage', () => {
  it('prints the version of package.json alone', async () => {
    const file = JSON.parse(
      await readFile(new URL('../../../package.json', import.meta.url), 'utf8'),
    ) as { version: string }
    assert.deepEqual(await run(['--version']), {
      code: 0,
      stdout: `${file.version}\n`,
      stderr: '',
    })
  })

  it('shows help on standard output when asked', async () => {
    for (const args of [['--help'], ['help']]) {
      const { code, stdout, stderr } = await run(args)
      assert.equal(code, 0)
      assert.match(stdout, /Usage: doorward/)
      assert.equal(stderr, '')
    }
  })

  it('prints version and help as JSON when asked', async () => {
    const printed = async (...args: string[]) => {
      const { code, stdout } = await run([...args, '--json'])
      assert.equal(code, 0)
      return JSON.parse(stdout) as { topic?: string; text: string }
    }
    assert.deepEqual(await printed('--version'), { version })
    const { topic, text } = await printed('help', 'events', 'retry')
    assert.equal(topic, 'events retry')
    assert.match(text, /^Usage: doorward events retry/)
    for (const words of [['help'], ['help', 'doctor'], ['help', 'oauth', 'login']])
      assert.equal(`${(await printed(...words)).text}\n`, (await run(words)).stdout)
  })

  it('shows the global options in one line in the help of every command', async () => {
    const { code, stdout } = await run(['webhook', 'send', '--help'])
    assert.equal(code, 0)
    assert.match(stdout, /--sample/)
    assert.match(stdout, /^Global options: --home .*--no-start \(doorward --help\)$/m)
    assert.match((await run(['--help'])).stdout, /^ +--no-start +do not start/m)
  })

  it('shows no options of a group that its commands do not take', async () => {
    const { stdout } = await run(['events', 'retry', '--help'])
    assert.match(stdout, /--wait/)
    assert.match(stdout, /--json/)
    assert.doesNotMatch(stdout, /--limit|--follow/)
  })

  it('keeps help within 80 columns', async () => {
    const ofLogins = ['login', 'list', 'logout', 'token', 'exec', 'git-credential']
    const ofWebhooks = ['list', 'add', 'send', 'explain', 'learn']
    for (const name of [
      '',
      ...ofLogins.map((word) => `oauth ${word}`),
      ...ofWebhooks.map((word) => `webhook ${word}`),
      'agent',
      'agent add',
      'events',
      'completion',
      'events open',
      'events retry',
      'events cancel',
      'daemon',
      'daemon install',
      'daemon uninstall',
      'doctor',
      'config',
      'status',
    ]) {
      const { stdout } = await run([...name.split(' ').filter(Boolean), '--help'])
      assert.deepEqual(
        stdout.split('\n').filter((line) => line.length > 80),
        [],
        name,
      )
    }
  })

  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    [
      'an unknown command, with the nearest',
      ['evnts'],
      /command 'evnts'\nhint: did you mean "events"\?/,
    ],
    [
      'the name of a command without its group',
      ['logs', '-f'],
      /command 'logs'\nhint: did you mean "daemon logs"\?/,
    ],
    [
      'the name of a command of two groups',
      ['list'],
      /command 'list'\nhint: did you mean "oauth list" or "webhook list" or "session list" or "workspace list"\?/,
    ],
    [
      'the name of a command in a group that has none of it',
      ['agent', 'list'],
      /command 'list'\nhint: doorward agent --help/,
    ],
    ['an unknown subcommand of events', ['events', 'shwo'], /events shwo'\nhint: .*"show"/],
    [
      'an event without what is to be done with it',
      ['events', 'evt_1', '--json'],
      /"detail": "evt_1 is the id of an event, not a command",\n +"hint": "doorward events show evt_1"/,
    ],
    ['an unknown state', ['events', '--state', 'fialed'], /no state "fialed"\nhint: .*"failed"/],
    ['an unknown option, with the nearest', ['events', '--folow'], /'--folow'\nhint: .*--follow/],
    ['a group without a command', ['daemon'], /a command is missing/],
    [
      'a missing argument, with the help of the command',
      ['--no-color', 'oauth', 'login'],
      /missing required argument 'provider'\nhint: doorward oauth login --help/,
    ],
    ['an argument too many', ['config', 'path', 'x'], /too many arguments/],
    ['a limit that is no number', ['events', '--limit', 'ten'], /from 1 to 999999/],
    ['an option without its value', ['status', '--home'], /argument missing/],
    ['a home without a name', ['init', '--home', ''], /--home names no folder/],
    [
      'a file that is not there',
      ['webhook', 'learn', '/a', '--from', '/none'],
      /cannot read \/none: no such file/,
    ],
    [
      'two sources of one secret',
      ['oauth', 'login', 'x', '--client-secret', 'y', '--client-secret-stdin'],
      /cannot be used with/,
    ],
    [
      'a webhook for a doctor who looks at everything',
      ['doctor', '/a'],
      /only --privacy takes webhooks\nhint: .*--privacy \/a/,
    ],
  ]
  for (const [what, args, message] of wrong)
    it(`ends with 2 for ${what}`, async () => {
      const { code, stdout, stderr } = await run(args)
      assert.equal(code, 2)
      assert.equal(stdout, '')
      assert.match(stderr, message)
    })

  it('says what is wrong as a JSON document with --json', async () => {
    for (const args of [
      ['--json', 'evnts'],
      ['oauth', '--json'],
      ['config', 'schema', 'x', '--json'],
    ]) {
      const { code, stdout, stderr } = await run(args)
      assert.equal(code, 2)
      assert.equal(stdout, '')
      assert.equal((JSON.parse(stderr) as { code: string }).code, 'usage')
    }
  })
})
