import assert from 'node:assert/strict'
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../../shared/version.ts'
import { Bus } from '../../../tray/dbus/bus.ts'
import type { Variant } from '../../../tray/dbus/marshal.ts'
import { cleanEnvironment } from '../../support/daemon/daemon.ts'
import { describeOnLinux } from '../../support/desktop/desktop.ts'
import { end, firstLine, startBus } from '../../support/desktop/session-bus.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const main = fileURLToPath(new URL('../../../tray/sni/main.js', import.meta.url))
const icon = readFileSync(new URL('assets/icons/idle@2x.png', packageFolder)).toString('base64')
const itemName = 'org.kde.StatusNotifierItem'

describeOnLinux('our own tray program', () => {
  let children: ChildProcess[]
  let bus: Bus
  let program: ChildProcessWithoutNullStreams
  let stderr: string
  let address: string

  const start = async () => {
    const env = cleanEnvironment({ DBUS_SESSION_BUS_ADDRESS: address })
    program = spawn(process.execPath, [main], { env, stdio: 'pipe' })
    stderr = ''
    program.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    assert.equal(await heard(), '{"type":"ready"}')
  }
  const say = (line: object | string) =>
    program.stdin.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  const heard = async () => firstLine(program, program.stdout, 'the program')
  /** Shows this menu and resolves with the name that the program registers on the bus. */
  const show = async (menu: object): Promise<string> => {
    const registered = new Promise<string>((resolve) => {
      bus.serve('/StatusNotifierWatcher', {
        'org.kde.StatusNotifierWatcher': {
          methods: {
            RegisterStatusNotifierItem: {
              takes: 's',
              gives: '',
              run: ([name]) => {
                resolve(String(name))
                return []
              },
            },
          },
          properties: {},
          signals: {},
        },
      })
    })
    say(menu)
    await bus.ownName('org.kde.StatusNotifierWatcher')
    return registered
  }
  const ask = async (destination: string, path: string, member: string, body: string[]) => {
    const properties = 'org.freedesktop.DBus.Properties'
    const signature = 's'.repeat(body.length)
    const [value] = await bus.call({
      destination,
      path,
      interface: properties,
      member,
      signature,
      body,
    })
    return value
  }

  beforeEach(async () => {
    children = []
    address = await startBus(await temporaryFolder(), children)
    bus = await Bus.connect({ DBUS_SESSION_BUS_ADDRESS: address })
    await start()
  })
  afterEach(async () => {
    bus.close()
    await end(program)
    await Promise.all(children.map(end))
  })

  it('serves icon and tool tip, and changes them', async () => {
    const name = await show({ icon, title: '', tooltip: 'Doorward: <b>Ready', items: [] })
    assert.equal(name, `${itemName}-${program.pid}-1`)
    const all = (await ask(name, '/StatusNotifierItem', 'GetAll', [itemName])) as Map<
      string,
      Variant
    >
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

    const changed = new Promise<void>((resolve, reject) => {
      bus.onSignal({ interface: itemName, member: 'NewToolTip' }, () => resolve()).catch(reject)
    })
    await bus.ownName('test.Sync')
    say({ type: 'update-menu', menu: { icon, tooltip: 'Doorward: Working', items: [] } })
    await changed
    const tip = (await ask(name, '/StatusNotifierItem', 'Get', [itemName, 'ToolTip'])) as Variant
    assert.deepEqual(tip.value, ['', [], 'Doorward: Working', ''])
  })

  it('reports a click, and survives invalid lines and pictures', async () => {
    const items = [{ __id: 1, title: 'Quit', enabled: true, hidden: false }]
    for (const line of ['', 'garbage', '{"type":"update-item"}', '{"type":"dance"}', '[1]'])
      say(line)
    const name = await show({ icon: 'bm90IGEgcGljdHVyZQ==', title: '', tooltip: '', items })
    say({ type: 'update-item', item: { __id: 99, title: 'x' } })
    const line = heard()
    const menu = (await ask(name, '/StatusNotifierItem', 'Get', [
      itemName,
      'Menu',
    ])) as Variant<string>
    await bus.call({
      destination: name,
      path: menu.value,
      interface: 'com.canonical.dbusmenu',
      member: 'Event',
      signature: 'isvu',
      body: [1, 'clicked', menu, 0],
    })
    assert.deepEqual(JSON.parse(await line), { type: 'clicked', item: {}, seq_id: -1, __id: 1 })
    assert.match(stderr, /the icon cannot be shown/)
  })

  it('exits on request, and when its parent has exited', async () => {
    say({ type: 'exit' })
    assert.deepEqual(await once(program, 'exit'), [0, null])
    await start()
    await show({ icon, title: '', tooltip: '', items: [] })
    program.stdin.end()
    assert.deepEqual(await once(program, 'exit'), [0, null])
  })

  it('exits with a reason when the session bus dies', async () => {
    await show({ icon, title: '', tooltip: '', items: [] })
    const closed = once(program, 'close')
    await Promise.all(children.map(end))
    assert.deepEqual(await closed, [1, null])
    assert.match(stderr, /^no session bus/)
  })
})
