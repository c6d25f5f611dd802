import assert from 'node:assert/strict'
import type { EventDetail } from '../../../shared/api/api.ts'
import { asciiJson, asciiText, takesUtf8 } from '../../../cli/terminal/output.ts'
import { eventLines, nextStep } from '../../../cli/commands/events/format.ts'
import type { Context } from '../../../cli/context.ts'
import { showHelp } from '../../../cli/commands/help.ts'
import { createProgram, fitted } from '../../../cli/program.ts'
import { createLiveBlock } from '../../../cli/commands/events/follow.ts'
import { printFields } from '../../../cli/terminal/table.ts'
import type { Terminal } from '../../../cli/terminal/terminal.ts'
import { stageLines } from '../../../cli/commands/events/show.ts'
import { wrapLine, wrapped } from '../../../cli/terminal/wrap.ts'

const plain = (_: unknown, text: string) => text

const event: EventDetail = {
  id: 'evt_0123456789abcdef01',
  kind: 'webhook',
  webhook: '/webhook/github',
  receivedAt: '2026-06-07T10:00:00.000Z',
  state: 'failed',
  stage: 'agent',
  code: 'agent-failed',
  detail: 'there is no such program on PATH',
  agent: 'claude',
  attempts: 1,
  durations: { queuedMs: 500, agentMs: 1500 },
  targets: [{ target: 'log', state: 'waiting', attempts: 0 }],
  signed: true,
  prompt: 'x',
}

describe('cli: narrow terminals', () => {
  it('shows help between words, its descriptions below where there is no room beside', () => {
    const page = (columns: number) => {
      let text = ''
      createProgram(['oauth', 'login'], undefined)
        .commands.find((command) => command.name() === 'oauth')
        ?.commands.find((command) => command.name() === 'login')
        ?.configureOutput({
          getOutHelpWidth: () => columns,
          writeOut: (written) => (text += fitted(written, columns)),
        })
        .outputHelp()
      return text
    }
    for (const columns of [40, 60, 72]) {
      const wide = page(columns)
        .split('\n')
        .filter((line) => line.length > columns && !line.startsWith('  doorward '))
      assert.deepEqual(wide, [], `${columns}`)
    }
    assert.match(page(40), /^ {2}--no-browser\n {6}print the URL and open no browser$/m)
    assert.match(page(80), /^ {2}--no-browser +print the URL and open no browser$/m)
    assert.match(page(60), /without one,\nthe command says where to create it\./)
  })

  it('shows the topics of help as its commands', async () => {
    const shown = async (columns: number) => {
      const lines: string[] = []
      const program = createProgram([], undefined).configureOutput({ writeOut: () => undefined })
      const print = (line: string) => void lines.push(...line.split('\n'))
      await showHelp({ terminal: { columns, print } } as unknown as Context, [], program)
      return lines
    }
    const narrow = await shown(40)
    assert.deepEqual(
      narrow.filter((line) => line.length > 40),
      [],
    )
    assert.match(narrow.join('\n'), /^ {2}agents\n {6}the agents that answer: /m)
    assert.match((await shown(80)).join('\n'), /^ {2}agents +the agents that answer: /m)
  })

  it('goes on with a value below where it began, in its colour, and leaves a pipe its one line', () => {
    const shown = (columns: number | undefined) => {
      const lines: string[] = []
      const value = { text: 'one two three four', paint: (text: string) => `<${text}>` }
      const terminal = { columns, print: (line: string) => void lines.push(line) } as Terminal
      printFields([['signature', value]], terminal)
      return lines
    }
    assert.deepEqual(shown(22), ['signature  <one two>', '           <three four>'])
    assert.deepEqual(shown(undefined), ['signature  <one two three four>'])
  })

  it('breaks lines between words, and never a URL or a command', () => {
    const cases: readonly (readonly [string, number, string])[] = [
      ['one two three', 8, 'one two\nthree'],
      ['one two', 7, 'one two'],
      [
        'log in, then: doorward events retry evt_1',
        30,
        'log in, then:\ndoorward events retry evt_1',
      ],
      [
        'doorward webhook list shows what there is',
        30,
        'doorward webhook list shows\nwhat there is',
      ],
      [
        'hint: doorward oauth login x --scopes a,b,c',
        20,
        'hint:\ndoorward oauth login x --scopes a,b,c',
      ],
      [
        'open http://127.0.0.1:18789/a/very/long/path now',
        20,
        'open\nhttp://127.0.0.1:18789/a/very/long/path\nnow',
      ],
      [
        'first:\n\n  ssh -N -L 53174:127.0.0.1:53174 me@box\nthen go on',
        16,
        'first:\n\n  ssh -N -L 53174:127.0.0.1:53174 me@box\nthen go on',
      ],
      [
        'again: doorward events retry evt_0123456789abcdef01, or not',
        40,
        'again:\ndoorward events retry evt_0123456789abcdef01,\nor not',
      ],
      ['日本 日本', 8, '日本\n日本'],
    ]
    for (const [text, columns, expected] of cases) assert.equal(wrapped(text, columns), expected)
    assert.equal(wrapped('one two', undefined), 'one two')
    assert.equal(wrapLine('    deep one', 9), '    deep\none')
  })

  it('knows a locale that takes UTF-8, and one that does not', () => {
    assert.equal(takesUtf8({ LANG: 'C.UTF-8' }, 'linux'), true)
    assert.equal(takesUtf8({ LC_ALL: 'C', LANG: 'de_DE.UTF-8' }, 'linux'), false)
    assert.equal(takesUtf8({ LC_ALL: '', LC_CTYPE: 'en_US.utf8', LANG: 'C' }, 'linux'), true)
    assert.equal(takesUtf8({ LANG: 'de_DE.ISO-8859-1' }, 'linux'), false)
    assert.equal(takesUtf8({}, 'linux'), true)
    assert.equal(takesUtf8({ LANG: 'C' }, 'win32'), true)
  })

  it('writes marks and letters in ASCII, and no byte that a terminal could take for a command', () => {
    assert.equal(asciiText('✓ done · Müller… → 日\u{1f600}'), '+ done - Muller... > ??')
    assert.equal(asciiText('Û31m'), 'U31m')
    assert.equal(asciiJson('{"a":"ü\u{1f600}"}'), '{"a":"\\u00fc\\ud83d\\ude00"}')
    assert.deepEqual(JSON.parse(asciiJson('{"a":"ü\u{1f600}"}')), { a: 'ü\u{1f600}' })
  })

  it('gives each event lines of its own where a table says nothing', () => {
    const lines = eventLines([event], new Date(event.receivedAt), plain, {
      columns: 40,
      header: true,
    })
    assert.equal(lines.length, 3)
    assert.match(lines[0] ?? '', /^✗ failed {2}\d\d:\d\d:\d\d {2}[0-9a-f]{8}$/)
    assert.equal(lines[1], '  /webhook/github 1.5s')
    assert.equal(lines[2], '  /webhook/github: at agent: there is n…')
    for (const columns of [24, 40, 60, 80, 120])
      for (const line of eventLines([event], new Date(), plain, { columns, header: true }))
        assert.ok(line.length <= Math.max(columns, 24), `${columns}: ${line}`)
  })

  it('draws the stages of an event, one after another in proportion', () => {
    assert.deepEqual(stageLines(event, { paint: plain, columns: 60 }), [
      '✓ receive  ✓ verify  ✓ parse  ✓ filter  ✓ expand',
      `queue     500ms        ${'█'.repeat(9)}`,
      `agent     ✗ 1.5s       ${' '.repeat(9)}${'█'.repeat(28)}`,
      'delivery  not reached',
    ])
    for (const columns of [40, 80, 120])
      for (const line of stageLines(event, { paint: plain, columns }))
        assert.ok(line.length <= columns, line)
    const rejected = stageLines(
      { ...event, state: 'rejected', stage: 'verify', durations: {} },
      { paint: plain, columns: 60 },
    )
    assert.equal(rejected[0], '✓ receive  ✗ verify')
    const filtered: EventDetail = { ...event, state: 'filtered', durations: {}, signed: false }
    const { stage: _, ...passedOver } = filtered
    assert.equal(
      stageLines(passedOver, { paint: plain, columns: 80 })[0],
      '✓ receive  - verify  ✓ parse  - filter  passed over',
    )
  })

  it('says what helps with a failed event', () => {
    assert.equal(nextStep(event), 'doorward events retry evt_0123456789abcdef01')
    assert.match(nextStep({ ...event, code: 'needs-login' }) ?? '', /oauth list.*then: .*retry/)
    // The commit that the event names is gone: only the rule as it is now may name another.
    assert.match(
      nextStep({ ...event, code: 'workspace-ref-not-found' }) ?? '',
      /^a retry cannot fetch it: a newer event .*then: doorward events retry evt_\w+ --again$/,
    )
    const { prompt: _, ...forgotten } = event
    assert.match(nextStep(forgotten) ?? '', /from the sender/)
    assert.match(
      nextStep({ ...event, state: 'rejected', code: 'signature-invalid' }) ?? '',
      /reason/,
    )
    assert.equal(
      nextStep({ ...event, state: 'duplicate', about: { event: 'evt_0a' } }),
      'to run it once more, as the webhook is now: doorward events retry evt_0a --again',
    )
    assert.equal(nextStep({ ...event, state: 'done' }), undefined)
  })

  it('draws a block again over all the rows that it has taken', () => {
    let written = ''
    const window = {
      columns: 10,
      draw: (text: string) => {
        written += text
      },
    }
    const block = createLiveBlock(window)
    block.draw(['stays'], ['12345678', 'b'])
    assert.equal(written, 'stays\n12345678\nb\n')
    written = ''
    window.columns = 4
    block.draw([], ['c'])
    assert.equal(written, '\u001b[3A\r\u001b[Jc\n')
    written = ''
    block.clear()
    block.clear()
    assert.equal(written, '\u001b[1A\r\u001b[J')
  })
})
