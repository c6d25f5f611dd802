import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { launcher, type TrayProgram, trayProgramsFor } from '../../../tray/icon/tray-binary.ts'
import { describeOnLinux } from '../../support/desktop/desktop.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('the programs for the icon', () => {
  const display = { DISPLAY: ':0' }
  const rows: readonly [string, NodeJS.Platform, string, NodeJS.ProcessEnv, TrayProgram[]][] = [
    ['an X display', 'linux', 'x64', display, ['packaged', 'own']],
    ['Wayland alone', 'linux', 'x64', { WAYLAND_DISPLAY: 'wayland-0' }, ['own']],
    ['an empty DISPLAY', 'linux', 'x64', { DISPLAY: '' }, ['own']],
    ['an ARM processor', 'linux', 'arm64', display, ['own']],
    ['macOS', 'darwin', 'arm64', {}, ['packaged']],
    ['Windows', 'win32', 'x64', {}, ['packaged']],
    ['a choice', 'linux', 'x64', { ...display, DOORWARD_TRAY_PROGRAM: 'own' }, ['own']],
    ['the other choice', 'linux', 'arm64', { DOORWARD_TRAY_PROGRAM: 'packaged' }, ['packaged']],
    [
      'a choice of none',
      'linux',
      'x64',
      { ...display, DOORWARD_TRAY_PROGRAM: 'x' },
      ['packaged', 'own'],
    ],
  ]
  for (const [name, platform, arch, env, expected] of rows) {
    it(`are chosen for ${name}`, () => {
      assert.deepEqual(trayProgramsFor(platform, arch, env), expected)
    })
  }
})

describeOnLinux('the script that starts our own program', () => {
  it('starts exactly this node and file, whatever their folders are called', async () => {
    const folder = join(await temporaryFolder(), 'it\'s "a" $(folder) `of` ours')
    await mkdir(folder)
    const node = join(folder, 'no de')
    await copyFile(process.execPath, node)
    const main = join(folder, "ma'in.mjs")
    await writeFile(main, 'console.log(process.execPath, process.argv[1], process.ppid)')
    const script = join(folder, 'script')
    await writeFile(script, launcher(node, main), { mode: 0o700 })
    const { stdout, stderr } = spawnSync(script, { encoding: 'utf8' })
    assert.equal(stdout, `${node} ${main} ${process.pid}\n`, stderr)
  })
})
