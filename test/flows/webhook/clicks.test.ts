import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Status } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { ActionRunner } from '../../../tray/actions/actions.ts'
import { readSettings } from '../../../tray/settings.ts'
import type { Note } from '../../../tray/notifications/note.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { eventWith, startFakeDaemon, statusWith } from '../../support/daemon/fake-daemon.ts'
import { send } from '../../support/servers/http.ts'
import { startHeldAgent, stopHome } from '../../support/daemon/restart.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('clicks', () => {
  const stopping = new AbortController()
  const notes: Note[] = []
  const news = new EventEmitter()
  let actions: ActionRunner

  const take = async (home: Home): Promise<void> => {
    notes.length = 0
    const options = {
      home,
      show: (note: Note) => {
        notes.push(note)
        news.emit('news')
      },
      onChange: () => news.emit('news'),
      onStartFailed: () => undefined,
      quit: () => stopping.abort(),
      signal: stopping.signal,
    }
    actions = new ActionRunner(options, await readSettings(home, () => undefined))
  }
  const until = async (is: () => boolean): Promise<void> => {
    while (!is()) await once(news, 'news', { signal: AbortSignal.timeout(10_000) })
  }
  const untilIdle = () => until(() => actions.ownState.inProgress.size === 0)

  it('do the same thing once, however fast they come', async () => {
    const home = await temporaryHome()
    const fake = await startFakeDaemon(home, statusWith({ events: [eventWith()] }))
    await take(home)
    for (let count = 0; count < 5; count += 1) actions.run({ do: 'show-event', id: 'evt_1' })
    assert.deepEqual([...actions.ownState.inProgress], ['show-event evt_1'])
    await untilIdle()
    assert.deepEqual(fake.posts, ['/events/evt_1/link'])
    assert.deepEqual(
      notes.map(({ subject }) => subject),
      ['/github: done'],
    )
  })

  it('open no page that is not safe: the event instead', async () => {
    const home = await temporaryHome()
    const fake = await startFakeDaemon(home, statusWith({ events: [eventWith()] }))
    await take(home)
    for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'http://evil.example/'])
      actions.run({ do: 'open-page', id: 'evt_1', url })
    await untilIdle()
    assert.deepEqual(
      fake.posts,
      Array.from({ length: 3 }, () => '/events/evt_1/link'),
    )
  })

  it('say that a choice cannot be kept, and keep to the one before', async () => {
    const home = await temporaryHome()
    await take(home)
    // A folder in its place cannot be replaced by a file, not even by root.
    await mkdir(join(home.root, 'tray.json'))
    actions.run({ do: 'set-notifications', on: false })
    await until(() => notes.length > 0)
    assert.equal(notes[0]?.subject, 'the setting was not saved')
    assert.equal(actions.ownState.notifications, true)
  })

  for (const [action, title] of [
    [{ do: 'restart-daemon' }, undefined],
    [{ do: 'start-daemon' }, undefined],
    // The next daemon is asked: it has no client of GitHub.
    [{ do: 'login', provider: 'github' }, 'GitHub needs an OAuth client'],
  ] as const)
    it(`wait for a daemon that was stopped and still finishes, and start the next: ${action.do}`, async () => {
      const agent = await startHeldAgent()
      const { url, home, process, client } = await startDaemon({
        gateway: 'server: { port: 0 }\n',
        agents: `agents: { held: { kind: http, url: "${agent.url}" } }`,
        webhooks: 'webhooks: [{ path: /a, agent: held, prompt_template: x }]\n',
      })
      const ended = once(process, 'exit')
      await take(home)
      const headers = { 'content-type': 'application/json' }
      await send(`${url}/a`, { headers, body: '{}' })
      const { answer } = await agent.next()
      await client.post('/daemon/shutdown')
      const isStopping = async () => (await client.get<Status>('/status')).stopping
      while (!(await isStopping())) assert.equal(process.exitCode, null)
      actions.run(action)
      // By then the click has asked too.
      for (let asked = 0; asked < 30; asked += 1) assert.equal(await isStopping(), true)
      answer('late')
      client.close()
      await untilIdle()
      assert.deepEqual(await ended, [0, null])
      assert.deepEqual(
        notes.map((note) => note.subject),
        title === undefined ? [] : [title],
      )
      await stopHome(home)
      agent.close()
    })

  describe('on the real daemon', () => {
    let daemon: RunningDaemon

    before(async () => {
      daemon = await startDaemon({
        agents: `agents: { fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }, echo: { kind: echo } }`,
        webhooks: `webhooks:
  - { path: /fails, agent: fails, prompt_template: x }
  - { path: /works, agent: echo, prompt_template: x }
`,
      })
      await take(daemon.home)
    })
    after(() => daemon.stop())

    const deliver = async (path: string): Promise<string> => {
      const reply = await send(`${daemon.url}${path}`, {
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      const id = String(reply.json()['id'])
      await untilFinished(daemon, id)
      return id
    }

    it('run again what has failed', async () => {
      const id = await deliver('/fails')
      const events = await followEvents(daemon)
      actions.run({ do: 'retry-event', id })
      const again = await events.next((event) => event.id === id && event.state === 'failed')
      assert.equal(again.attempts, 2)
      events.close()
      await untilIdle()
      assert.deepEqual(notes, [])
    })

    it('run again what is done', async () => {
      const id = await deliver('/works')
      const events = await followEvents(daemon)
      actions.run({ do: 'run-event-again', id })
      const again = await events.next((event) => event.id === id && event.state === 'done')
      assert.equal(again.attempts, 2)
      events.close()
      await untilIdle()
      assert.deepEqual(notes, [])
    })

    it('say why something cannot be run again', async () => {
      const id = await deliver('/works')
      actions.run({ do: 'retry-event', id })
      await until(() => notes.length > 0)
      assert.equal(notes[0]?.subject, 'the event was not retried')
      assert.equal(notes[0]?.failure, true)
    })

    it('say that an event is forgotten', async () => {
      notes.length = 0
      actions.run({ do: 'show-event', id: 'evt_none' })
      await until(() => notes.length > 0)
      assert.equal(notes[0]?.subject, 'the event cannot be shown')
      assert.match(notes[0]?.body ?? '', /^There is no such event in memory/)
    })
  })
})
