import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import dbus, { type Message, type MessageBus } from 'dbus-next'
import { Bus, type Signal } from '../../../tray/dbus/bus.ts'
import { BusError } from '../../../tray/dbus/connect.ts'
import { variant } from '../../../tray/dbus/marshal.ts'
import { describeOnLinux } from '../../support/desktop/desktop.ts'
import { end, startBus } from '../../support/desktop/session-bus.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describeOnLinux('the connection to the session bus', () => {
  let children: ChildProcess[]
  let env: NodeJS.ProcessEnv
  let bus: Bus
  let other: MessageBus
  let otherName: string

  beforeEach(async () => {
    children = []
    env = { DBUS_SESSION_BUS_ADDRESS: await startBus(await temporaryFolder(), children) }
    bus = await Bus.connect(env)
    other = dbus.sessionBus({ busAddress: env['DBUS_SESSION_BUS_ADDRESS'] })
    await once(other, 'connect')
    await other.requestName('test.Other', 0)
    const [found] = await bus.call({
      ...daemonCall,
      member: 'GetNameOwner',
      signature: 's',
      body: ['test.Other'],
    })
    otherName = String(found)
  })
  afterEach(async () => {
    bus.close()
    other.disconnect()
    await Promise.all(children.map(end))
  })

  const toOther = (member: string, signature = '', body: unknown[] = [], timeoutMs?: number) => ({
    destination: otherName,
    path: '/x',
    interface: 'test.Other',
    member,
    signature,
    body,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  })

  it('exchanges values with another library', async () => {
    other.addMethodHandler((message: Message) => {
      if (message.member !== 'Echo') return false
      other.send(dbus.Message.newMethodReturn(message, message.signature, message.body))
      return true
    })
    const signature = 'ybiusogasa(iiay)a{sv}v(s(ib))aai'
    const values = [
      [1, true, -4, 5, 'ünï ✓ 😀', '/o/p', 'a{sv}'],
      [['a', ''], [[22, 22, Buffer.from([255, 0, 1])]]],
      [
        new Map([['k', variant('as', ['v'])]]),
        variant('(ii)', [1, 2]),
        ['s', [1, false]],
        [[1], []],
      ],
    ].flat()
    assert.deepEqual(await bus.call(toOther('Echo', signature, values)), values)
    const long = 'x'.repeat(1_000_000)
    assert.deepEqual(await bus.call(toOther('Echo', 's', [long])), [long])
    const many = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => bus.call(toOther('Echo', 'i', [index]))),
    )
    assert.deepEqual(
      many.flat(),
      Array.from({ length: 100 }, (_, index) => index),
    )
  })

  it('rejects with the D-Bus name of the error', async () => {
    await assert.rejects(bus.call(toOther('Nothing')), {
      code: 'org.freedesktop.DBus.Error.UnknownMethod',
    })
    await assert.rejects(bus.call({ ...toOther('X'), destination: 'no.such.Name' }), {
      code: 'org.freedesktop.DBus.Error.ServiceUnknown',
    })
    await assert.rejects(bus.call(toOther('X', 'u', ['no number'])), { code: 'bus-protocol' })
  })

  it('gives up on a program that never answers', async () => {
    other.addMethodHandler(() => true)
    await assert.rejects(bus.call(toOther('Hang', '', [], 50)), { code: 'bus-timeout' })
  })

  it('receives matching signals, and reports the owner of a name', async () => {
    const owners: (string | undefined)[] = []
    let more = () => {}
    await bus.onOwner('test.Name', (owner) => {
      owners.push(owner)
      more()
    })
    assert.deepEqual(owners, [undefined])
    const changed = new Promise<void>((resolve) => (more = resolve))
    await other.requestName('test.Name', 0)
    await changed
    assert.deepEqual(owners, [undefined, otherName])

    const heard: Signal[] = []
    const match = { interface: 'test.Other', member: 'News', sender: 'test.Name' }
    const first = new Promise<void>((resolve) => {
      void bus.onSignal(match, (signal) => {
        heard.push(signal)
        resolve()
        throw new Error('an error of a listener')
      })
    })
    await bus.call({ ...daemonCall, member: 'GetId' })
    other.send(dbus.Message.newSignal('/n', 'test.Other', 'Olds', 's', ['not asked for']))
    other.send(dbus.Message.newSignal('/n', 'test.Other', 'News', 's', ['new']))
    await first
    assert.deepEqual(heard, [{ sender: otherName, path: '/n', body: ['new'] }])
  })

  it('serves an object to another library, and refuses unknown members', async () => {
    bus.serve('/served', {
      'test.Served': {
        methods: { Add: { takes: 'ii', gives: 'i', run: ([a, b]) => [Number(a) + Number(b)] } },
        properties: { Colour: () => variant('s', 'green') },
      },
    })
    assert.equal(await bus.ownName('test.Server'), true)
    const rival = await Bus.connect(env)
    assert.equal(await rival.ownName('test.Server'), false)
    rival.close()

    const match = "type='signal',interface='test.Served'"
    await other.call(
      new dbus.Message({ ...daemonCall, member: 'AddMatch', signature: 's', body: [match] }),
    )
    const ask = async (
      member: string,
      signature = '',
      body: unknown[] = [],
      path = '/served',
      of = 'test.Served',
    ) =>
      other.call(
        new dbus.Message({
          destination: bus.name,
          path,
          interface: of,
          member,
          signature,
          body,
        }),
      )
    const refusal = (name: string) => ({ type: `org.freedesktop.DBus.Error.${name}` })
    await assert.rejects(ask('Add', 's', ['x']), refusal('InvalidArgs'))
    await assert.rejects(ask('constructor'), refusal('UnknownMethod'))
    await assert.rejects(ask('Add', '', [], '/elsewhere'), refusal('UnknownObject'))
    assert.deepEqual((await ask('Add', 'ii', [2, 3]))?.body, [5])
    const grown = once(other, 'message')
    bus.emit('/served', 'test.Served', 'Grown', 'u', [8])
    assert.deepEqual(((await grown) as [Message])[0].body, [8])
    const get = async (name: string) =>
      ask('Get', 'ss', ['test.Served', name], '/served', 'org.freedesktop.DBus.Properties')
    assert.deepEqual((await get('Colour'))?.body, [new dbus.Variant('s', 'green')])
    await assert.rejects(get('toString'), refusal('UnknownProperty'))
  })

  it('rejects pending calls when the bus dies, and throws nowhere else', async () => {
    const [daemon] = children
    other.addMethodHandler(() => true)
    other.on('error', () => undefined)
    const hanging = bus.call(toOther('Hang'))
    const rejected = assert.rejects(hanging, { code: 'bus-closed' })
    const ended = daemon && once(daemon, 'exit')
    daemon?.kill('SIGKILL')
    await Promise.all([rejected, ended])
    await bus.closed
    bus.emit('/x', 'test.Other', 'News', '', [])
    await assert.rejects(bus.call(toOther('Echo')), { code: 'bus-closed' })
    await assert.rejects(Bus.connect(env), { code: 'bus-absent' })
  })

  it('does not wait for a bus that never answers, and refuses what is not a bus', async () => {
    for (const [greeting, code] of [
      ['', 'bus-timeout'],
      ['REJECTED EXTERNAL\r\n', 'bus-refused'],
      [`OK 1\r\n${'garbage '.repeat(10)}`, 'bus-closed'],
    ] as const) {
      const path = join(await temporaryFolder(), 'bus')
      const server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.once('data', () => greeting && socket.write(greeting))
      }).listen(path)
      await once(server, 'listening')
      await assert.rejects(
        Bus.connect({ DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` }, 300),
        (error) => error instanceof BusError && error.code === code,
      )
      server.close()
    }
    await assert.rejects(Bus.connect({}), { code: 'bus-absent' })
  })
})

const daemonCall = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const
