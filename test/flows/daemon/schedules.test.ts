import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Status } from '../../../shared/api/api.ts'
import type { ScheduleRun } from '../../../shared/api/schedules.ts'
import { schedulesSchema } from '../../../shared/api/schedules.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'

/** A time of the machine that is this many seconds ahead, as `at` is written. */
const ahead = (seconds: number): string => {
  const time = new Date(Date.now() + seconds * 1000)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

describe('schedules', () => {
  let daemon: RunningDaemon
  let due: Promise<unknown>
  before(async () => {
    daemon = await startDaemon({
      agents: 'agents:\n  echo: { kind: echo }\n',
      schedules: `schedules:
  - { name: soon, at: '${ahead(4)}', agent: echo, prompt_template: 'due {{schedule.due_at}}', deliver_to: 'file:out.md' }
  - { name: weekly, cron: '0 9 * * 1', timezone: Europe/Berlin, agent: echo, prompt_template: 'I am {{schedule.name}}{% if true %}!{% endif %}: {{context.command}}', context: [command], context_command: [echo, 'from the program'] }
`,
    })
    due = untilScheduled()
  })
  after(async () => daemon?.stop())

  const untilScheduled = async () => {
    for (;;) {
      const { events } = await daemon.client.get<{ events: { id: string; webhook: string }[] }>(
        '/events?webhook=schedule:soon',
      )
      if (events[0]) return untilFinished(daemon, events[0].id)
    }
  }
  const cli = async (...words: string[]) => run(words, { home: daemon.home })

  it('run by hand, with their own values, as an event like any other', async () => {
    const ran = await cli('schedule', 'run', 'weekly', '--json')
    const { id, status } = JSON.parse(ran.stdout) as ScheduleRun
    assert.equal(status, 'accepted', ran.stderr)
    const event = await untilFinished(daemon, id)
    assert.equal(event.result, 'I am weekly!: from the program\n')
    assert.deepEqual([event.source, event.state, event.signed], ['schedule', 'done', false])
    assert.match(event.deliveryId ?? '', /^schedule:weekly:\d{4}-/)
    const shown = await cli('events', 'show', id)
    assert.match(shown.stdout, /begun by a schedule of this machine/)
    const again = await cli('events', 'retry', id, '--again', '--wait')
    assert.equal(again.code, 0, again.stderr)
  })

  it('are listed with their next runs, paused and resumed', async () => {
    const list = await cli('schedule', 'list')
    assert.match(list.stdout, /^NAME +AGENT +NEXT/)
    assert.match(list.stdout, /^weekly +echo +Mon .*09:00 Europe\/Berlin \(in /m)
    const { schedules } = schedulesSchema.parse(await daemon.client.get('/schedules'))
    assert.equal(schedules.find(({ name }) => name === 'weekly')?.nextRuns.length, 3)
    assert.match((await cli('schedule', 'pause', 'weekly')).stdout, /^weekly: paused/)
    assert.match((await cli('schedule', 'list')).stdout, /^weekly +echo +paused/m)
    assert.match((await cli('schedule', 'resume', 'weekly')).stdout, /^weekly: Mon/)
    const wrong = await cli('schedule', 'run', 'weekli')
    assert.equal(wrong.code, 1)
    assert.match(wrong.stderr, /there is no such schedule\n.*known: soon, weekly/)
  })

  it('run at their time, and have no address', async () => {
    await due
    assert.match(
      await readFile(join(daemon.home.root, 'out.md'), 'utf8'),
      /due \d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.000Z/,
    )
    const { status } = await fetch(`${daemon.url}/schedule:soon`, { method: 'POST', body: '{}' })
    assert.equal(status, 404)
    const { schedules } = await daemon.client.get<Status>('/status')
    const soon = schedules?.find(({ name }) => name === 'soon')
    assert.ok(['delivering', 'done'].includes(soon?.lastState ?? ''), soon?.lastState)
    const sent = await cli('webhook', 'send', 'soon', '--sample', 'github:push')
    assert.match(sent.stderr, /"soon" is a schedule[^]*doorward schedule run soon/)
  })

  it('are added by a command, which writes nothing that cannot be used', async () => {
    const add = (...words: string[]) => cli('schedule', 'add', ...words)
    const added = await add('daily', '--every', '24h', '--agent', 'echo', '--prompt', 'Hello: 1')
    assert.equal(added.code, 0, added.stderr)
    const file = join(daemon.home.config, 'schedules.yaml')
    const text = await readFile(file, 'utf8')
    assert.match(
      text,
      /- name: daily\n +every: '?24h'?\n +agent: echo\n +prompt_template: \|-\n +Hello: 1\n/,
    )
    const digest = await add('weekly-digest', '--repo', '.', '--agent', 'echo')
    assert.equal(digest.code, 0, digest.stderr)
    for (const [words, error] of [
      [['daily', '--every', '2h', '--agent', 'echo', '--prompt', 'x'], /two schedules daily/],
      [['x', '--cron', '* * * * * *', '--agent', 'echo', '--prompt', 'x'], /six|6 fields/],
      [['x', '--agent', 'echo', '--prompt', 'x'], /does not say when/],
      [['x', '--every', '1h', '--agent', 'nobody', '--prompt', 'x'], /unknown agent/],
      [['x', '--every', '1h', '--agent', 'echo'], /--prompt/],
    ] as const) {
      const before = await readFile(file, 'utf8')
      const refused = await add(...words)
      assert.equal(refused.code, 2, words.join(' '))
      assert.match(refused.stderr, error)
      assert.equal(await readFile(file, 'utf8'), before)
    }
    const { schedules } = await daemon.client.get<{ schedules: { name: string }[] }>('/schedules')
    assert.deepEqual(
      schedules.map(({ name }) => name),
      ['soon', 'weekly', 'daily', 'weekly-digest'],
    )
  })

  it('make up what was missed while no daemon ran, and ask where they shall', async () => {
    const { home } = daemon
    await daemon.stop()
    const file = join(home.state, 'schedules.json')
    const states = JSON.parse(await readFile(file, 'utf8')) as Record<string, { lastDue: number }>
    const daily = states['daily']
    assert.ok(daily)
    daily.lastDue -= 30 * 3_600_000
    const weekly = states['weekly']
    assert.ok(weekly)
    weekly.lastDue -= 15 * 86_400_000
    await writeFile(file, JSON.stringify(states))
    const config = join(home.config, 'schedules.yaml')
    const text = await readFile(config, 'utf8')
    await writeFile(config, text.replace('name: weekly,', 'name: weekly, missed: ask,'))
    daemon = await startDaemon({ home })
    const missed = await cli('events', 'missed')
    assert.match(missed.stdout, /schedule weekly missed 2 runs/)
    const status = await cli('status')
    assert.match(status.stdout, /2 runs were missed/)
    const { events } = await daemon.client.get<{ events: { webhook: string | null }[] }>('/events')
    assert.deepEqual(
      events.map(({ webhook }) => webhook).filter((path) => path !== null),
      ['schedule:daily'],
    )
    assert.equal((await cli('events', 'missed', '--skip')).stdout, '1 skipped\n')
    assert.equal((await cli('events', 'missed')).stdout, '')
  })
})
