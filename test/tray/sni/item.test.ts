import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { Bus } from '../../../tray/dbus/bus.ts'
import type { Variant } from '../../../tray/dbus/marshal.ts'
import { iconFile } from '../../../tray/icon/icon.ts'
import type { Icon } from '../../../tray/icon/systray.ts'
import type { Row } from '../../../tray/menu.ts'
import { startStatusNotifier } from '../../../tray/sni/item.ts'
import { describeOnLinux } from '../../support/desktop/desktop.ts'
import { end, startBus } from '../../support/desktop/session-bus.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const itemName = 'org.kde.StatusNotifierItem'
const quit: Row = { text: 'Quit', action: { do: 'quit' } }

describeOnLinux('the icon of the tray itself', () => {
  const usual = process.env['DBUS_SESSION_BUS_ADDRESS']
  let children: ChildProcess[]
  let bus: Bus
  let icon: Icon | undefined
  let clicked: Row[]

  /** Shows this state and resolves with the name that the icon registers on the bus. */
  const show = async (rows: readonly Row[], tooltip: string, file = iconFile('idle')) => {
    const registered = new Promise<string>((resolve) => {
      const run = ([name]: readonly unknown[]) => {
        resolve(String(name))
        return []
      }
      const methods = { RegisterStatusNotifierItem: { takes: 's', gives: '', run } }
      bus.serve('/StatusNotifierWatcher', {
        'org.kde.StatusNotifierWatcher': { methods, properties: {} },
      })
    })
    icon = await startStatusNotifier({ rows, icon: file, tooltip }, (row) => clicked.push(row))
    await bus.ownName('org.kde.StatusNotifierWatcher')
    return registered
  }
  const ask = async (destination: string, member: string, ...body: string[]) => {
    const call = { path: '/StatusNotifierItem', interface: 'org.freedesktop.DBus.Properties' }
    const signature = 's'.repeat(body.length)
    return (await bus.call({ ...call, destination, member, signature, body }))[0]
  }

  beforeEach(async () => {
    children = []
    clicked = []
    const address = await startBus(await temporaryFolder(), children)
    process.env['DBUS_SESSION_BUS_ADDRESS'] = address
    bus = await Bus.connect({ DBUS_SESSION_BUS_ADDRESS: address })
  })
  afterEach(async () => {
    await icon?.stop()
    icon = undefined
    bus.close()
    await Promise.all(children.map(end))
    if (usual === undefined) delete process.env['DBUS_SESSION_BUS_ADDRESS']
    else process.env['DBUS_SESSION_BUS_ADDRESS'] = usual
  })

  it('serves picture and tool tip, and changes them, and leaves a click to the panel', async () => {
    const name = await show([], 'Doorward: <b>Ready')
    assert.equal(name, `${itemName}-${process.pid}-1`)
    const all = (await ask(name, 'GetAll', itemName)) as Map<string, Variant>
    const value = (property: string) => all.get(property)?.value
    assert.deepEqual(
      (value('IconPixmap') as [number, number, Buffer][]).map(([w, h, { length }]) => [
        w,
        h,
        length,
      ]),
      [
        [22, 22, 22 * 22 * 4],
        [44, 44, 44 * 44 * 4],
      ],
    )
    assert.deepEqual(value('ToolTip'), ['', [], 'Doorward: <b>Ready', ''])
    assert.deepEqual([value('Status'), value('ItemIsMenu')], ['Active', true])

    const activate = { destination: name, path: '/StatusNotifierItem', interface: itemName }
    await assert.rejects(
      bus.call({ ...activate, member: 'Activate', signature: 'ii', body: [1, 1] }),
      { code: 'org.freedesktop.DBus.Error.UnknownMethod' },
    )

    const changed = new Promise<void>((resolve, reject) => {
      bus.onSignal({ interface: itemName, member: 'NewToolTip' }, () => resolve()).catch(reject)
    })
    await bus.ownName('test.Sync')
    icon?.show({ rows: [], icon: iconFile('running'), tooltip: 'Doorward: Working' })
    await changed
    const tip = (await ask(name, 'Get', itemName, 'ToolTip')) as Variant
    assert.deepEqual(tip.value, ['', [], 'Doorward: Working', ''])
  })

  it('reports a click, also with a picture that cannot be read', async () => {
    const name = await show([quit], '', '/no/such/picture.png')
    const pixmap = (await ask(name, 'Get', itemName, 'IconPixmap')) as Variant
    assert.deepEqual(pixmap.value, [])
    const menu = (await ask(name, 'Get', itemName, 'Menu')) as Variant<string>
    await bus.call({
      destination: name,
      path: menu.value,
      interface: 'com.canonical.dbusmenu',
      member: 'Event',
      signature: 'isvu',
      body: [1, 'clicked', menu, 0],
    })
    assert.deepEqual(clicked, [quit])
  })

  it('reports its submenus as changed to a panel that has read the first level alone', async () => {
    const name = await show([{ text: 'More', rows: [quit] }], '')
    const menu = { path: '/MenuBar', interface: 'com.canonical.dbusmenu' }
    const updated = new Promise<readonly unknown[]>((resolve, reject) => {
      bus.onSignal({ ...menu, member: 'LayoutUpdated' }, ({ body }) => resolve(body)).catch(reject)
    })
    await bus.call({
      ...menu,
      destination: name,
      member: 'GetLayout',
      signature: 'iias',
      body: [0, 1, []],
    })
    assert.deepEqual(await updated, [1, 1])
  })

  it('ends when the session bus dies, and cannot start without one', async () => {
    await show([quit], '')
    await Promise.all(children.map(end))
    assert.equal(await icon?.ended, 'the session bus has ended')
    await assert.rejects(show([quit], ''), { code: 'tray-no-display' })
  })
})
