import assert from 'node:assert/strict'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail, Status } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('programs and files as sources', () => {
  let daemon: RunningDaemon
  let folder: string
  let follow: Awaited<ReturnType<typeof followEvents>>

  before(async () => {
    folder = await temporaryFolder()
    await mkdir(join(folder, 'inbox'))
    await writeFile(join(folder, 'inbox', 'old.pdf'), 'was here before')
    // It writes what is put into its pipe.
    const echo = (more = '') =>
      `{ command: [sh, -c, 'mkfifo "${folder}/$0" 2>/dev/null; exec tail -n +1 -f "${folder}/$0"', ${more}`
    daemon = await startDaemon({
      agents: `agents:\n  echo: { kind: echo }\n  slow: { kind: command, command: [sleep, '600'] }\n`,
      webhooks: `webhooks:
  - { path: /lines, agent: echo, prompt_template: '{{event.line}}{{event.text}}', source: ${echo(`lines] }`)} }
  - { path: /batch, agent: echo, prompt_template: '{{event.lines}}', source: ${echo(`batch], batch: 300ms }`)} }
  - { path: /flood, agent: slow, prompt_template: x, source: ${echo(`flood], max_waiting: 3 }`)} }
  - { path: /broken, agent: echo, prompt_template: x, source: { command: [sh, -c, 'echo no such pipe >&2; exit 2'] } }
  - { path: /inbox, agent: echo, prompt_template: '{{event.event}} {{event.name}} {{event.size}}', source: { files: ['${folder}/inbox/*.pdf'], events: [created, changed, removed] } }
`,
    })
    follow = await followEvents(daemon)
    await untilStatus((sources) => sources.filter(({ state }) => state === 'connected').length >= 4)
  })
  after(async () => {
    follow?.close()
    await daemon?.stop()
  })

  const untilStatus = async (is: (sources: NonNullable<Status['sources']>) => boolean) => {
    for (;;) {
      const { sources = [] } = await daemon.client.get<Status>('/status')
      if (is(sources)) return sources
    }
  }
  const write = (pipe: string, text: string) => writeFile(join(folder, pipe), text)
  const answerOf = async (path: string): Promise<EventDetail> => {
    const { id } = await follow.next(({ webhook, state }) => webhook === path && state === 'done')
    return daemon.client.get(`/events/${id}`)
  }

  it('make an event of each line, JSON or not', async () => {
    await write('lines', 'hello\n{"text": "an object"}\n')
    const first = await answerOf('/lines')
    assert.deepEqual([first.result, first.source, first.signed], ['hello', 'command', false])
    assert.equal((await answerOf('/lines')).result, 'an object')
    const shown = await run(['events', 'show', first.id], { home: daemon.home })
    assert.match(shown.stdout, /none: a line of a program of this machine/)
  })

  it('gather the lines of a time', async () => {
    await write('batch', 'a\n{"b": 1}\nc\n')
    assert.deepEqual(JSON.parse((await answerOf('/batch')).result ?? ''), ['a', { b: 1 }, 'c'])
  })

  it('leave out the newest of a flood, and say how many', async () => {
    await write(
      'flood',
      `${Array.from({ length: 500 }, (_, index) => `line ${index}`).join('\n')}\n`,
    )
    await follow.next(({ code, kind }) => kind === 'daemon' && code === 'source-failed')
    const sources = await untilStatus((all) =>
      all.some(({ webhooks, ignored = 0 }) => webhooks.includes('/flood') && ignored > 490),
    )
    const { events } = await daemon.client.get<{ events: EventDetail[] }>('/events?webhook=/flood')
    assert.ok(events.length >= 3 && events.length <= 5, String(events.length))
    assert.equal(sources.find(({ webhooks }) => webhooks.includes('/flood'))?.state, 'connected')
  })

  it('start a program again that ends, and say what is wrong with it', async () => {
    const sources = await untilStatus((all) => all.some(({ problem }) => problem !== undefined))
    const { problem } = sources.find(({ webhooks }) => webhooks.includes('/broken')) ?? {}
    assert.match(
      problem?.detail ?? '',
      /ends at its start again and again: exit code 2: no such pipe/,
    )
    const status = await run(['status'], { home: daemon.home })
    assert.match(status.stdout, /no such pipe/)
    // Nothing can be sent to them, so nothing is unsigned.
    assert.doesNotMatch(status.stdout, /unsigned|other people/)
    assert.match(status.stdout, /\d{3} left out: \/flood/)
  })

  it('tell of files that come, change and go, and of none that were there', async () => {
    const inbox = join(folder, 'inbox')
    await writeFile(join(inbox, 'note.txt'), 'is not meant')
    await writeFile(join(inbox, 'bill.pdf'), '12345')
    assert.equal((await answerOf('/inbox')).result, 'created bill.pdf 5')
    await writeFile(join(inbox, 'bill.pdf'), '1234567')
    assert.equal((await answerOf('/inbox')).result, 'changed bill.pdf 7')
    await rename(join(inbox, 'bill.pdf'), join(inbox, 'bill.txt'))
    assert.match((await answerOf('/inbox')).result ?? '', /^removed bill\.pdf/)
    await rm(join(inbox, 'old.pdf'))
    assert.match((await answerOf('/inbox')).result ?? '', /^removed old\.pdf/)
  })

  it('take nothing by HTTP', async () => {
    for (const path of ['/lines', '/inbox', '/webhook/lines']) {
      const { status } = await fetch(`${daemon.url}${path}`, { method: 'POST', body: '{}' })
      assert.equal(status, 404, path)
    }
  })
})
