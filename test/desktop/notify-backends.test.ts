import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import dbus, { type MessageBus } from 'dbus-next'
import { nodeNotifier } from '../../tray/notifications/node-notifier.ts'
import type { Backend, Notice } from '../../tray/notifications/backend.ts'
import { notifyDbus } from '../../tray/notifications/dbus.ts'
import { describeOnLinux } from '../support/desktop/desktop.ts'
import {
  type NotificationService,
  playNotifications,
} from '../support/desktop/notification-service.ts'
import { end, startBus } from '../support/desktop/session-bus.ts'
import { temporaryFolder } from '../support/temporary.ts'

const notice: Notice = {
  title: 'Doorward · /github',
  subject: '/github',
  body: 'well',
  icon: '/icon.png',
  buttons: ['Open', 'Retry'],
  shownMs: 15_000,
}
const nasty = {
  ...notice,
  title: '--help <i>',
  body: '-u critical\n<b>bold</b> & \\074i\\076 "$(id)" `id` 🚀\u202E' + 'x'.repeat(5000),
}
const nastyBody = `-u critical\n&lt;b&gt;bold&lt;/b&gt; &amp; \\074i\\076 "$(id)" \`id\` 🚀${'x'.repeat(5000)}`
const drawn = [
  { key: 'default', label: 'Open' },
  { key: '0', label: 'Open' },
  { key: '1', label: 'Retry' },
]

/** A private bus with a notification service, and a backend that finds it by these variables. */
const onBus = (make: (env: NodeJS.ProcessEnv) => Backend) => {
  const children: ChildProcess[] = []
  const news = new EventEmitter()
  const pressed = new EventEmitter()
  let bus: MessageBus
  const parts = {
    env: {} as NodeJS.ProcessEnv,
    service: {} as NotificationService,
    backend: {} as Backend,
    news,
    show: async (what: Notice = notice, signal = AbortSignal.timeout(10_000)) =>
      parts.backend.show(what, (button) => pressed.emit('pressed', button), signal),
    nextPress: async (): Promise<number> => (await once(pressed, 'pressed'))[0] as number,
    /** Waits for calls until it is so. */
    until: async (isSo: () => boolean) => {
      while (!isSo()) await once(news, 'news', { signal: AbortSignal.timeout(10_000) })
    },
  }
  beforeEach(async () => {
    const address = await startBus(await temporaryFolder(), children)
    parts.env = { PATH: process.env['PATH'], DBUS_SESSION_BUS_ADDRESS: address }
    bus = dbus.sessionBus({ busAddress: address })
    await once(bus, 'connect')
    parts.service = playNotifications(bus, news)
    await parts.service.comeBack()
    parts.backend = make(parts.env)
  })
  afterEach(async () => {
    await parts.backend.stop()
    bus.disconnect()
    await Promise.all(children.splice(0).map(end))
  })
  return parts
}

describeOnLinux('notes over the session bus', () => {
  const on = onBus((env) => notifyDbus(env))

  it('show text, buttons, icon and time', async () => {
    await on.show()
    const [shown] = on.service.shown
    assert.deepEqual(shown, {
      id: 1,
      app: 'Doorward',
      replaces: 0,
      icon: '/icon.png',
      title: 'Doorward · /github',
      body: 'well',
      buttons: drawn,
      hints: { urgency: 1 },
      timeout: 15_000,
    })
  })

  it('show any text as text', async () => {
    await on.show(nasty)
    assert.equal(on.service.shown[0]?.title, '--help ‹i›')
    assert.equal(on.service.shown[0]?.body, nastyBody)
  })

  it('are plain text and without buttons for a service that supports neither', async () => {
    on.service.can('body')
    await on.show({ ...notice, body: '1 < 2 & 3' })
    assert.equal(on.service.shown[0]?.body, '1 < 2 & 3')
    assert.deepEqual(on.service.shown[0]?.buttons, [])
  })

  for (const name of ['Xfce Notify Daemon', 'lxqt-notificationd'])
    it(`have each button once where the default action is drawn as a button: ${name}`, async () => {
      on.service.goBy(name)
      await on.show()
      assert.deepEqual(on.service.shown[0]?.buttons, [
        { key: 'default', label: 'Open' },
        { key: '1', label: 'Retry' },
      ])
    })

  for (const [name, version, title] of [
    ['Plasma', '5.27.5', '/github'],
    ['lxqt-notificationd', '1.2.0', '/github'],
    ['gnome-shell', '46.2', '/github'],
    ['gnome-shell', '43.9', 'Doorward · /github'],
  ] as const)
    it(`begin with our name unless the service shows it: ${name} ${version}`, async () => {
      on.service.goBy(name, version)
      await on.show()
      assert.equal(on.service.shown[0]?.title, title)
    })

  it('report which button was pressed, once', async () => {
    await on.show()
    const [shown] = on.service.shown
    assert.ok(shown)
    const retry = on.nextPress()
    on.service.press(shown, '1')
    assert.equal(await retry, 1)

    await on.show()
    const [, second] = on.service.shown
    assert.ok(second)
    const open = on.nextPress()
    on.service.press(shown, '1')
    on.service.press(second, '__proto__')
    await on.show()
    const [, , third] = on.service.shown
    assert.ok(third)
    on.service.press(third, 'default')
    assert.equal(await open, 0)
  })

  it('replace an open note with the same key', async () => {
    await on.show({ ...notice, key: 'k' })
    await on.show({ ...notice, key: 'other' })
    await on.show({ ...notice, key: 'k', body: 'changed' })
    assert.deepEqual(
      on.service.shown.map(({ replaces }) => replaces),
      [0, 0, 1],
    )
  })

  it('are closed by their key, if they are open', async () => {
    await on.backend.close?.('k')
    await on.show({ ...notice, key: 'k' })
    await on.show({ ...notice, key: 'other' })
    await on.backend.close?.('k')
    assert.deepEqual(on.service.closed, [1])
    await on.show({ ...notice, key: 'k' })
    assert.equal(on.service.shown.at(-1)?.replaces, 0)
  })

  it('report each failure of the service, and work again after it', async () => {
    on.service.refuse()
    await assert.rejects(on.show(), { kind: 'refused' })
    on.service.hang()
    await assert.rejects(on.show(notice, AbortSignal.timeout(50)), { kind: 'silent' })
    on.service.recover()
    await on.service.leave()
    await assert.rejects(on.show(), { kind: 'no-service' })
    const back = new Promise<void>((resolve) => on.backend.onReturn?.(resolve))
    await on.service.comeBack()
    await back
    on.service.can('body')
    await on.show()
    assert.deepEqual(on.service.shown.at(-1)?.buttons, [])
  })

  it('are unsuited where there is no bus', async () => {
    const other = notifyDbus({ DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' })
    const shown = other.show(notice, () => undefined, AbortSignal.timeout(10_000))
    await assert.rejects(shown, { kind: 'unsuited' })
    await other.stop()
  })

  it('are closed at the end if they have buttons', async () => {
    await on.show()
    await on.show({ ...notice, buttons: [] })
    await on.backend.stop()
    assert.deepEqual(on.service.closed, [1])
  })
})

describeOnLinux('notes by node-notifier', () => {
  const before = { ...process.env }
  const on = onBus((env) => {
    // The library passes no other environment on.
    process.env['DBUS_SESSION_BUS_ADDRESS'] = env['DBUS_SESSION_BUS_ADDRESS']
    return nodeNotifier()
  })
  afterEach(() => {
    process.env = { ...before }
  })

  it('show any text as text, never as an option', async () => {
    await on.show(nasty)
    const [shown] = on.service.shown
    assert.equal(shown?.app, 'Doorward')
    assert.equal(shown?.title, ' --help ‹i›')
    assert.equal(shown?.body, ` ${nastyBody}`)
    assert.equal(shown?.timeout, 15_000)
    assert.deepEqual(shown?.buttons, [])
  })

  it('say that there is no service', async () => {
    await on.service.leave()
    await assert.rejects(on.show(), { kind: 'no-service' })
  })

  it('say that the program is missing', async () => {
    process.env['PATH'] = '/nowhere'
    await assert.rejects(on.show(), { kind: 'no-program' })
  })

  it('are given up while the service hangs, and their program is killed', async () => {
    on.service.hang()
    const control = new AbortController()
    const shown = on.show(notice, control.signal)
    shown.catch(() => undefined)
    await once(on.news, 'news')
    control.abort()
    await assert.rejects(shown, { kind: 'silent' })
  })
})
