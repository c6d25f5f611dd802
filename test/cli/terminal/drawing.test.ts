import assert from 'node:assert/strict'
import type { EventRecord, WebhookSummary } from '../../../shared/api/api.ts'
import { eventLines, eventRow } from '../../../cli/commands/events/format.ts'
import { toExitCode } from '../../../cli/exit-code.ts'
import { logLine } from '../../../cli/daemon-client/log-tail.ts'
import { hasBrowser, mayBrowserBeElsewhere } from '../../../cli/commands/oauth/login-help.ts'
import { fromNow, moment } from '../../../cli/terminal/format.ts'
import { tableLines } from '../../../cli/terminal/table.ts'
import { webhookLines } from '../../../cli/commands/webhook/list.ts'
import { cut, formatDuration } from '../../../shared/text.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'

const plain = (_: unknown, text: string) => text

describe('cli: drawing', () => {
  it('shows durations in at most two units', () => {
    const cases: readonly (readonly [number, string])[] = [
      [0, '0ms'],
      [-5, '0ms'],
      [340, '340ms'],
      [2500, '2.5s'],
      [59_999, '59s'],
      [200_000, '3m 20s'],
      [3_600_000, '1h'],
      [3_605_000, '1h'],
      [277_200_000, '3d 5h'],
    ]
    for (const [ms, text] of cases) assert.equal(formatDuration(ms), text)
  })

  it('shows the clock today, the day before that, and the year of long ago', () => {
    const now = new Date(2026, 5, 7, 12, 30)
    assert.equal(moment(new Date(2026, 5, 7, 9, 4, 5).toISOString(), now), '09:04:05')
    assert.equal(moment(new Date(2026, 5, 6, 9, 4, 5).toISOString(), now), '06-06 09:04')
    assert.equal(moment(new Date(2025, 5, 6, 9, 4, 5).toISOString(), now), '2025-06-06 09:04')
    assert.equal(moment('nonsense', now), '?')
    assert.equal(fromNow(new Date(now.getTime() + 90_000).toISOString(), now), 'in 1m 30s')
    assert.equal(fromNow(new Date(now.getTime() - 90_000).toISOString(), now), '1m 30s ago')
  })

  it('aligns columns, counts wide characters twice and cuts the last column', () => {
    assert.deepEqual(
      tableLines([
        ['a', 'b'],
        ['日本', 'c'],
      ]),
      ['a     b', '日本  c'],
    )
    assert.deepEqual(tableLines([['id', 'abcdefghij']], 9), ['id  abcd…'])
    assert.deepEqual(tableLines([['id', 'a']], undefined, [4]), ['id    a'])
    assert.equal(cut('日本語', 5), '日本…')
    assert.equal(cut('abc', 0), '')
    for (const line of tableLines([['x', 'y'.repeat(500)]], 80)) assert.equal(line.length, 80)
  })

  it('keeps escape sequences and line ends of foreign text out of a table', () => {
    const lines = tableLines([['\u001b[31mred\u001b[0m', 'a\nb\u202etxt.exe']])
    assert.deepEqual(lines, ['red  a btxt.exe'])
  })

  it('shows why an event failed, else its answer', () => {
    const base: EventRecord = {
      id: 'evt_1',
      kind: 'webhook',
      webhook: '/a',
      receivedAt: '2026-06-07T10:00:00.000Z',
      state: 'failed',
      stage: 'agent',
      detail: 'it ended with 3',
      agent: 'echo',
      attempts: 1,
      durations: { agentMs: 1500 },
      targets: [],
      resultPreview: 'hello',
    }
    const now = new Date('2026-06-07T10:00:01.000Z')
    const what = (event: EventRecord) => eventRow(event, now, plain).at(-4)
    assert.equal(what(base), '/a: at agent: it ended with 3')
    const done = { ...base, state: 'done' as const }
    assert.equal(what(done), '/a: hello')
    assert.equal(eventRow(done, now, plain).at(-2), '1.5s')
    const empty = { ...done, resultPreview: '\n' }
    assert.equal(what(empty), '/a: the answer is empty')
    const refused = { ...base, state: 'filtered' as const, resultPreview: undefined }
    assert.equal(what(refused), '/a: it ended with 3')
    const subject = { key: 'acme/shop#12', title: 'acme/shop#12 Add retries', kind: 'pull request' }
    assert.equal(what({ ...done, subject }), 'acme/shop#12 Add retries: hello')
    const url = 'https://github.com/acme/shop/pull/40'
    const links = [{ target: 'pull-request:acme/shop', what: 'pull request #40', url }]
    assert.equal(what({ ...done, subject, links }), 'acme/shop#12 Add retries: pull request #40')
    const posted = [{ target: 'slack:#ops', what: 'message', url }]
    assert.equal(what({ ...done, links: posted }), '/a: hello')
  })

  const failed: EventRecord = {
    id: 'evt_0123456789abcdef01',
    kind: 'webhook',
    webhook: '/webhook/github',
    receivedAt: '2026-06-07T10:00:00.000Z',
    state: 'failed',
    stage: 'agent',
    detail: 'there is no such program on PATH',
    agent: 'claude',
    attempts: 1,
    durations: { agentMs: 1500 },
    targets: [],
    usage: { inputTokens: 11_400, outputTokens: 600 },
  }

  it('says on 80 columns what failed and why, without its rule, duration and cost', () => {
    const now = new Date(failed.receivedAt)
    const lines = (columns: number | undefined, atLeast?: number[]) =>
      eventLines([failed], now, plain, { columns, header: true, ...(atLeast && { atLeast }) })
    for (const line of [...lines(80), ...lines(80, [8, 8, 12, 80, 16, 5])])
      assert.ok(line.length <= 80, line)
    assert.match(
      lines(80).join('\n'),
      /STATE +WHAT +RULE\n.*github: at agent: there… +\/webhook\/github$/,
    )
    assert.match(lines(70).join('\n'), /STATE +WHAT\n.*github: at agent: .*…$/)
    for (const columns of [undefined, 200])
      assert.match(
        lines(columns).join('\n'),
        /WHAT +RULE +TOOK +COST\n.*at agent: .*PATH +\/webhook\/github +1\.5s +12k tokens$/,
      )
  })

  it('gives a URL that does not fit beside its webhook a line of its own', () => {
    const webhook: WebhookSummary = {
      path: '/webhook/github',
      url: 'http://127.0.0.1:18789/webhook/github',
      agent: 'reviewer',
      enabled: true,
      scheme: 'github',
      secret: 'set',
      deliverTo: ['notify:desktop', 'slack:#reviews'],
      counts: {
        accepted: 0,
        filtered: 0,
        duplicate: 0,
        rejected: 0,
        done: 0,
        failed: 0,
        dropped: 0,
      },
      lastEventAt: null,
    }
    const lines = (columns: number | undefined) =>
      webhookLines([webhook], new Date(), { paint: plain }, { columns, withTargets: true })
    assert.deepEqual(lines(80), [
      'PATH             AGENT     SCHEME  SECRET  LAST EVENT  DELIVERS TO',
      '/webhook/github  reviewer  github  set     -           notify:desktop, slack:#r…',
      '  http://127.0.0.1:18789/webhook/github',
    ])
    assert.match(lines(undefined).join('\n'), /URL\n.*slack:#reviews +http:\S+github$/)
    assert.deepEqual(lines(200), lines(undefined))
  })

  it('draws a line of the log, and leaves what is no JSON as it is', () => {
    const line =
      '{"level":40,"time":"2026-06-07T10:00:00Z","msg":"late\\u001b[2J","code":"x","n":1}'
    assert.equal(logLine(line, plain), '2026-06-07T10:00:00Z warn  late code=x n=1')
    assert.equal(logLine('not json \u001b[2J', plain), 'not json')
  })

  it('knows a machine without a browser', () => {
    assert.equal(hasBrowser('linux', {}), false)
    assert.equal(hasBrowser('linux', { DISPLAY: ':0' }), true)
    assert.equal(hasBrowser('linux', { BROWSER: 'lynx' }), true)
    assert.equal(hasBrowser('darwin', {}), true)
  })

  it('knows where the browser may not reach this machine', () => {
    const isElsewhere = (env: NodeJS.ProcessEnv, file = '') =>
      mayBrowserBeElsewhere('linux', env, (path) => path === file)
    const desktop = { DISPLAY: ':0' }
    assert.equal(isElsewhere(desktop), false)
    assert.equal(
      mayBrowserBeElsewhere('darwin', {}, () => false),
      false,
    )
    assert.equal(isElsewhere({}), true)
    for (const name of ['SSH_TTY', 'REMOTE_CONTAINERS', 'CODESPACES', 'WSL_DISTRO_NAME'])
      assert.equal(isElsewhere({ ...desktop, [name]: 'x' }), true, name)
    for (const file of ['/.dockerenv', '/run/.containerenv'])
      assert.equal(isElsewhere(desktop, file), true, file)
  })

  it('ends with the exit code of the error', () => {
    const code = (name: string) => toExitCode(new DoorwardError(name as ErrorCode, 'x'))
    assert.equal(code('usage'), 2)
    assert.equal(code('daemon-unreachable'), 3)
    assert.equal(code('daemon-foreign'), 3)
    assert.equal(code('needs-login'), 4)
    assert.equal(code('interrupted'), 130)
    assert.equal(code('of-a-newer-daemon'), 1)
    assert.equal(toExitCode(new Error('x')), 1)
  })
})
