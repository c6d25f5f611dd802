import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Command, CommanderError } from 'commander'
import { createProgram } from '../../cli/program.ts'
import type { EventRecord } from '../../shared/api/api.ts'
import {
  type RunningDaemon,
  cleanEnvironment,
  cliMain,
  startDaemon,
} from '../support/daemon/daemon.ts'
import { startGitlabHookServer } from '../support/servers/gitlab-hook-api.ts'
import { startHookServer } from '../support/servers/hook-api.ts'
import { startModelServer } from '../support/servers/model-server.ts'
import { json, startTargetServer } from '../support/servers/target-server.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { run, stopStarted } from './support/cli.ts'
import { blocksOf, listPages, readPage, spansOf } from './support/documents.ts'

/** The words of a shell, with what is in quotes as one. */
const wordsOf = (line: string): string[] =>
  (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replaceAll(/['"]/g, ''))

/** The first form that a synopsis such as `tunnel [--with a|b]` stands for. */
const oneForm = (line: string): string =>
  line
    .replaceAll(/\[([^\]|]*)(?:\|[^\]]*)?\]/g, '$1')
    .replace('doorward <command>', 'doorward status')

/** Where a command begins: in a shell, a transcript, a unit, a container, or a helper of git. */
const begins = /(?:^|npx |: |\/bin\/|'!|exec -it doorward )doorward(\s+[^\s\d].*|$)/

/** The calls of doorward in a line, each as its arguments. */
const callsIn = (line: string): string[][] =>
  oneForm(line)
    .replace(/(?:^|\s)#\s.*/, '')
    .split(/&&|\|\||[|;)]|\$\(|\s[<>]\s/)
    .flatMap((part) => {
      const [whole, args] = begins.exec(part.trim().replace(/'$/, '')) ?? []
      // Alone, or with any command.
      if (args === undefined || /^\s*…?$/.test(args)) return []
      // Git adds what it wants.
      return [[...wordsOf(args), ...(whole?.startsWith("'!") ? ['get'] : [])]]
    })

const groups = [
  'daemon',
  'oauth',
  'webhook',
  'agent',
  'events',
  'workspace',
  'config',
  'bot',
  'schedule',
]

/** The commands of a program, with those of its groups. */
const commandsOf = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(commandsOf),
]

/** Why the command line refuses these arguments, by its own parser; runs nothing. */
const faultOf = async (
  args: readonly string[],
  isMention: boolean,
): Promise<string | undefined> => {
  const at = args.indexOf('--')
  const [own, rest] = at === -1 ? [args, undefined] : [args.slice(0, at), args.slice(at + 1)]
  const program = createProgram([...own, ...groups], rest)
  for (const command of commandsOf(program))
    if (command.commands.length === 0 || command.name() === 'events')
      command.action(() => undefined)
  try {
    await program.parseAsync([...args], { from: 'user' })
    return undefined
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const isBare = args.every((word) => /^[a-z][a-z-]*$/.test(word))
    return isMention && isBare && error.code === 'commander.missingArgument'
      ? undefined
      : error.message
  }
}

/** What stands for a value of the reader's, with a value that there is. */
const placeholders: Readonly<Record<string, string>> = {
  PATH: '/webhook/github',
  'event.json': 'event.json',
  NAME: 'github:pull_request.opened',
  'OWNER/REPO': 'acme/door',
  ORGANISATION: 'acme',
  'GROUP/PROJECT': 'acme/tools/door',
  // That of a bot.
  '/webhook/ada-reviews': '/webhook/github-review',
}

/** Commands of blocks that are not run here, and why. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [
    /^doorward session (show|open|close|forget)/,
    'needs a conversation; test/flows/webhook/sessions.test.ts has one',
  ],
  [/oauth login|bot create|bot rotate|@acme-doorward/, 'needs an app, and a person in a browser'],
  [/google/, 'needs a login at Google'],
  [/daemon (un)?install/, 'changes what starts at login'],
  [/^doorward tray/, 'needs a desktop'],
  [/--follow|webhook learn/, 'waits for what comes'],
  [/^doorward tunnel/, 'needs a program; test/flows/daemon/getting-started.test.ts has one'],
  [/doctor --privacy/, 'asks a person'],
  [/--no-bot/, 'adds the entry that is there; getting-started.test.ts has it'],
  [/connect stripe/, 'needs an account; connect-stripe.test.ts has one'],
]

/** Of the GitHub CLI, under two names. */
const logins = ['doorward oauth import gh --yes', 'doorward oauth import gh --as work --yes']

/** What a page expects besides. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'webhooks.md': ['doorward agent add claude'],
}

const linesOf = (block: string): string[] =>
  block
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => callsIn(line).length > 0)

describe('the commands in the documents', () => {
  it('are those of the command line, with its arguments and options', async () => {
    const faults: string[] = []
    const topics = new Set<string>()
    let count = 0
    for (const page of await listPages()) {
      const source = await readPage(page)
      const blocks = ['sh', 'text', 'ini', 'yaml', 'dockerfile'].flatMap((language) =>
        blocksOf(source, language).flatMap(linesOf),
      )
      const mentions = spansOf(source).filter((span) => span !== 'doorward')
      for (const [lines, isMention] of [
        [blocks, false],
        [mentions, true],
      ] as const)
        for (const line of lines)
          for (const args of callsIn(line)) {
            count += 1
            const fault = await faultOf(args, isMention)
            if (fault !== undefined) faults.push(`${page}: ${line}: ${fault}`)
            const [first, topic = ''] = args
            if (first === 'help' && /^[a-z-]+$/.test(topic)) topics.add(topic)
          }
    }
    assert.deepEqual(faults, [])
    assert.ok(count > 200, String(count))
    assert.ok(topics.size > 5)
    for (const topic of topics) assert.equal((await run(['help', topic])).code, 0, topic)
  })

  it('are refused here with a wrong option, a missing argument, or one too many', async () => {
    for (const line of [
      'doorward webhook explain --sampel x /webhook/github # a comment',
      'git pull && doorward webhook disconnect',
      'T=$(doorward oauth tokne github) || exit',
      'doorward status now',
      'doorward events --limit many',
    ])
      for (const args of callsIn(line)) assert.ok(await faultOf(args, false), line)
    assert.deepEqual(callsIn("x '!doorward oauth git-credential'"), [
      ['oauth', 'git-credential', 'get'],
    ])
    assert.deepEqual(callsIn('doorward a | doorward b < c; doorward d'), [['a'], ['b'], ['d']])
  })
})

/** Answers as Claude Code does. */
const claude = `#!/bin/sh
cat > /dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"Fine."}'
`

describe('the commands in the blocks of the documents', () => {
  let daemon: RunningDaemon
  let folder: string
  let model: Awaited<ReturnType<typeof startModelServer>>
  const closers: (() => void)[] = []

  before(async function () {
    if (process.platform === 'win32') return this.skip()
    folder = await temporaryFolder()
    const bin = {
      claude,
      curl: '#!/bin/sh\ncat > /dev/null\n',
      doorward: `#!/bin/sh\nexec '${process.execPath}' '${cliMain}' "$@"\n`,
      gh: '#!/bin/sh\necho gho_never-shown-0123456789\n',
    }
    for (const [name, script] of Object.entries(bin))
      await writeFile(join(folder, name), script, { mode: 0o700 })
    await writeFile(join(folder, 'report.sh'), '#!/bin/sh\ntest -n "$GITHUB_TOKEN"\n', {
      mode: 0o700,
    })
    await writeFile(join(folder, 'event.json'), '{}')
    model = await startModelServer()
    const scopes = ['repo', 'admin:org_hook']
    const [github, hooks, gitlab] = await Promise.all([
      startTargetServer(
        json(200, { id: 1, login: 'ada' }, { 'x-oauth-scopes': scopes.join(', ') }),
      ),
      startHookServer(),
      startGitlabHookServer(),
    ])
    daemon = await startDaemon({
      gateway: `server: { public_url: 'https://gateway.example' }
providers:
  github: { api_url: '${github.origin}' }
targets:
  github: { api_url: '${hooks.apiUrl}' }
  gitlab: { token_env: GL, api_url: '${gitlab.apiUrl}' }
  telegram: { token_env: BOT }
`,
      webhooks: `webhooks:
  - path: /webhook/github
    agent: echo
    signature_scheme: github
    secret_env: WH
    prompt_template: '{{event.action}}'
    deliver_to: log
`,
      env: 'WH=0123456789abcdef0123456789abcdef\nGL=glpat-never-shown\n',
      variables: { PATH: searchPath() },
    })
    hooks.tunnel = daemon.url
    hooks.scopes = scopes
    gitlab.tunnel = daemon.url
    closers.push(...[github, hooks, gitlab, model].map(({ close }) => close))
  })
  after(async () => {
    for (const close of closers) close()
    if (!daemon) return
    // One of the commands restarts it.
    await stopStarted(daemon.home)
    await daemon.stop()
  })

  const searchPath = () => [folder, process.env['PATH']].join(delimiter)

  const shell = async (line: string): Promise<string | undefined> => {
    const env = cleanEnvironment({
      HOME: folder,
      PATH: searchPath(),
      DOORWARD_HOME: daemon.home.root,
      EDITOR: 'true',
    })
    const child = spawn('sh', ['-c', `{ ${line}\n} 2>&1`], { env, cwd: folder, timeout: 40_000 })
    // The secret of a sender, for a command that asks for one.
    child.stdin.end('0123456789abcdef0123456789abcdef')
    const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
    return child.exitCode === 0 ? undefined : `${line}: exit code ${child.exitCode}\n${said}`
  }

  /** With values for what the reader puts in. */
  const filled = (line: string, id: string): string =>
    Object.entries({ ...placeholders, ID: id })
      .reduce(
        (filling, [name, value]) => filling.replace(new RegExp(`(?<= )${name}(?= |$)`), value),
        line,
      )
      .replace('http://127.0.0.1:11434', model.origin)
      // On a terminal it asks.
      .replace('import gh', 'import gh --yes')

  it('do what they say in a home with what their page expects', async () => {
    const files = ['agents', 'webhooks', 'schedules'].map((name) =>
      join(daemon.home.config, `${name}.yaml`),
    )
    const fresh = await Promise.all(
      files.map(async (path) => readFile(path, 'utf8').catch(() => 'schedules: []\n')),
    )
    const faults: (string | undefined)[] = []
    const skipped = new Set<string>()
    let count = 0
    for (const page of await listPages()) {
      const lines = blocksOf(await readPage(page), 'sh').flatMap(linesOf)
      const mine = lines.filter((line) => {
        const [, reason] = elsewhere.find(([pattern]) => pattern.test(line)) ?? []
        if (reason !== undefined) skipped.add(reason)
        return reason === undefined
      })
      if (mine.length === 0) continue
      for (const [index, path] of files.entries()) await writeFile(path, fresh[index] ?? '')
      const isOnline = mine.some((line) => /oauth|connect/.test(line))
      for (const line of [
        'doorward daemon reload',
        ...(isOnline ? logins : []),
        ...(expected[page] ?? []),
      ])
        assert.equal(await shell(line), undefined)
      const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
      for (const line of mine) faults.push(await shell(filled(line, events[0]?.id ?? '')))
      count += mine.length
    }
    assert.deepEqual(
      faults.filter((fault) => fault !== undefined),
      [],
    )
    assert.ok(count > 40, String(count))
    // No reason without a command.
    assert.equal(skipped.size, elsewhere.length)
  }).timeout(180_000)
})
