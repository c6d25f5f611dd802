import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDisplay, hasXTray } from '../../shared/panels.ts'
import { describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { startDisplay } from '../support/desktop/display.ts'
import { end } from '../support/desktop/session-bus.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { playXTray } from '../support/desktop/x-tray.ts'

describe('the name of a display', () => {
  it('shows where its server listens', () => {
    const local = [{ path: '/tmp/.X11-unix/X1' }, { path: '\0/tmp/.X11-unix/X1' }]
    assert.deepEqual(parseDisplay(':1'), { number: '1', screen: 0, addresses: local })
    assert.deepEqual(parseDisplay('unix:1.2'), { number: '1', screen: 2, addresses: local })
    assert.deepEqual(parseDisplay('localhost:10.0')?.addresses, [{ host: 'localhost', port: 6010 }])
    for (const none of ['', 'wayland-0', ':', ':x']) assert.equal(parseDisplay(none), undefined)
  })
})

describeOnLinux('a panel on the X server', () => {
  it('is detected when it appears and when it disappears', async () => {
    const desktop = await startDesktop({ panel: 'absent' })
    try {
      assert.equal(await hasXTray(desktop.env), false)
      const leave = await playXTray(desktop.env['DISPLAY'] ?? '')
      assert.equal(await hasXTray(desktop.env), true)
      await leave()
      await desktop.endDisplay()
      assert.equal(await hasXTray(desktop.env), undefined)
      assert.equal(await hasXTray({}), undefined)
    } finally {
      await desktop.stop()
    }
  })

  it('is queried with the cookie of the display', async () => {
    const cookie = randomBytes(16)
    const entry = (display: string, secret: Buffer): Buffer[] => [
      Buffer.from([1, 0]),
      ...[
        Buffer.from('host'),
        Buffer.from(display),
        Buffer.from('MIT-MAGIC-COOKIE-1'),
        secret,
      ].flatMap((part) => [Buffer.from([0, part.length]), part]),
    ]
    const path = join(await temporaryFolder(), 'authority')
    await writeFile(path, Buffer.concat(entry('', cookie)), { mode: 0o600 })
    const children: ChildProcess[] = []
    try {
      const DISPLAY = await startDisplay(children, ['-auth', path])
      const env = { DISPLAY }
      const number = DISPLAY.slice(1)
      assert.equal(await hasXTray({ ...env, XAUTHORITY: '/nowhere' }), undefined)
      const file = [entry(`${number}7`, randomBytes(16)), entry(number, cookie)].flat()
      await writeFile(path, Buffer.concat([...file, Buffer.from([1])]))
      assert.equal(await hasXTray({ ...env, XAUTHORITY: path }), false)
    } finally {
      await Promise.all(children.map(end))
    }
  })
})
