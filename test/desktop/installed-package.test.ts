import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { type InstalledPackage, installPackage } from '../support/daemon/installed-package.ts'

/* No script runs at the installation, so the package must contain what the icon needs. */

describeOnLinux('the tray of the installed package', () => {
  let installed: InstalledPackage
  let desktop: Desktop | undefined
  let tray: ChildProcess | undefined

  before(async function () {
    this.timeout(120_000)
    installed = await installPackage()
  })
  afterEach(async () => {
    if (tray && tray.exitCode === null) {
      tray.kill('SIGTERM')
      await once(tray, 'exit')
    }
    await desktop?.stop()
    await installed.doorward('daemon', 'stop', '--quiet')
  })

  for (const [what, display] of [
    ['its icon by the packaged program', true],
    ['its icon by a program of its own where there is no display', false],
  ] as const)
    it(`starts a daemon, and shows ${what}`, async () => {
      desktop = await startDesktop({ display })
      tray = spawn(installed.program, ['tray'], {
        cwd: installed.home,
        env: { ...desktop.env, HOME: installed.home, DOORWARD_PORT: '0' },
        stdio: 'ignore',
      })
      const rows = await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
      assert.ok(rows.some(({ label }) => label === 'Quit tray'))
      const status = await installed.doorward('daemon', 'status')
      assert.equal(status.code, 0, status.stderr)
      await desktop.click('Quit tray')
      const [code] = tray.exitCode === null ? await once(tray, 'exit') : [tray.exitCode]
      assert.equal(code, 0)
    })
})
