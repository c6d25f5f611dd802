import assert from 'node:assert/strict'
import type { Home } from '../../shared/home/home.ts'
import {
  type Desktop,
  type ShownRow,
  describeOnLinux,
  startDesktop,
} from '../support/desktop/desktop.ts'
import { eventWith, startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { temporaryHome } from '../support/temporary.ts'
import { type RunningTray, startTray } from '../support/desktop/tray.ts'

const hostile = [
  'a\nb\r\nc\td',
  'x'.repeat(5000),
  '<b>bold</b> &amp; <img src=x onerror=alert(1)>',
  '😀👩‍👩‍👧‍👦'.repeat(100),
  '\u202egnp.exe \u2066x\u2069 \u200f\u061c',
  '--help',
  '-x',
  '\u0007\u001b[31mred\u0000',
  '_under_score_ &and',
  `e${'\u0301'.repeat(500)}`,
  '',
]
const all = (rows: readonly ShownRow[]): ShownRow[] =>
  rows.flatMap((row) => [row, ...all(row.rows)])

describeOnLinux('the tray in bad conditions', () => {
  let desktop: Desktop
  let home: Home
  let trays: RunningTray[]

  const start = (env = desktop.env): RunningTray => {
    const tray = startTray(home, env)
    trays.push(tray)
    return tray
  }
  const untilStatus = async (beginning: string) =>
    desktop.untilMenu(([first]) => first?.label.startsWith(beginning) ?? false)

  beforeEach(async () => {
    trays = []
    desktop = await startDesktop()
    home = await temporaryHome()
  })
  afterEach(async () => {
    await Promise.all(trays.map((tray) => tray.stop()))
    await desktop.stop()
  })

  it('still runs actions and shows the last state when thousands of events come', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const tray = start()
    await untilStatus('Ready')
    for (let count = 0; count < 5000; count += 1)
      daemon.send(eventWith({ id: `evt_${count}`, state: count % 2 ? 'running' : 'done' }))
    daemon.status = statusWith({ queue: { waiting: 7, running: 0, bytes: 1 } })
    daemon.send({})
    await untilStatus('Working · 7 waiting')
    await desktop.click('Quit tray')
    assert.equal(await tray.ended, 0)
  })

  it('shows any name as one short line of harmless text', async () => {
    const account = (name: string) => ({ id: '1', name })
    const daemon = await startFakeDaemon(
      home,
      statusWith({
        events: hostile
          .slice(0, 10)
          .map((webhook, index) =>
            eventWith({ id: `evt_${index}`, webhook, resultPreview: webhook }),
          ),
        providers: hostile.map((name, index) => ({
          provider: `${name}${index}`,
          clientKnown: true,
          status: 'ok',
          account: account(name),
        })),
        problems: hostile.map((detail) => ({ code: 'x', detail, hint: detail })),
      }),
    )
    start()
    await untilStatus('Needs you')
    const rows = await desktop.untilMenu((menu) =>
      all(menu).some(({ label }) => label.endsWith('xxx…')),
    )
    for (const { label } of all(rows)) {
      assert.doesNotMatch(label, /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u)
      assert.ok(Array.from(label).length <= 80, label)
    }
    for (const webhook of hostile) daemon.send(eventWith({ id: webhook, webhook, state: 'failed' }))
    const [note] = await desktop.untilNotes(1)
    assert.match(note?.title ?? '', /^Doorward/)
    daemon.status = statusWith()
    daemon.send({})
    await desktop.untilMenu((menu) => menu.some(({ label }) => label === 'Accounts'))
    await untilStatus('Ready')
  })
})
