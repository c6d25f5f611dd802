import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { displayOf, hasXTray } from '../../tray/x-tray.ts'
import { describeOnLinux, startDesktop } from '../support/desktop.ts'
import { end, firstLine } from '../support/session-bus.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { playXTray } from '../support/x-tray.ts'

describe('the name of a display', () => {
  it('tells where its server listens', () => {
    const local = [{ path: '/tmp/.X11-unix/X1' }, { path: '\0/tmp/.X11-unix/X1' }]
    assert.deepEqual(displayOf(':1'), { number: '1', screen: 0, addresses: local })
    assert.deepEqual(displayOf('unix:1.2'), { number: '1', screen: 2, addresses: local })
    assert.deepEqual(displayOf('localhost:10.0')?.addresses, [{ host: 'localhost', port: 6010 }])
    for (const none of ['', 'wayland-0', ':', ':x']) assert.equal(displayOf(none), undefined)
  })
})

describeOnLinux('a panel on the X server', () => {
  it('is seen when it comes and when it goes', async () => {
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

  it('is asked for with the password of the display', async () => {
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
    const args = [
      ...'-displayfd 3 -screen 0 64x64x24 -nolisten tcp -noreset -auth'.split(' '),
      path,
    ]
    const child: ChildProcess = spawn('Xvfb', args, {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    })
    try {
      const number = await firstLine(child, child.stdio[3] as Readable, 'Xvfb')
      const env = { DISPLAY: `:${number}` }
      assert.equal(await hasXTray({ ...env, XAUTHORITY: '/nowhere' }), undefined)
      const file = [entry(`${number}7`, randomBytes(16)), entry(number, cookie)].flat()
      await writeFile(path, Buffer.concat([...file, Buffer.from([1])]))
      assert.equal(await hasXTray({ ...env, XAUTHORITY: path }), false)
    } finally {
      await end(child)
    }
  })
})
