import assert from 'node:assert/strict'
import { type TrayProgram, trayProgramsFor } from '../../../tray/icon/tray-binary.ts'

describe('the programs for the icon', () => {
  const display = { DISPLAY: ':0' }
  const rows: readonly [string, NodeJS.Platform, string, NodeJS.ProcessEnv, TrayProgram[]][] = [
    ['an X display', 'linux', 'x64', display, ['packaged', 'own']],
    ['Wayland alone', 'linux', 'x64', { WAYLAND_DISPLAY: 'wayland-0' }, ['own']],
    ['an empty DISPLAY', 'linux', 'x64', { DISPLAY: '' }, ['own']],
    ['Plasma', 'linux', 'x64', { ...display, XDG_CURRENT_DESKTOP: 'KDE' }, ['own', 'packaged']],
    ['MATE', 'linux', 'x64', { ...display, XDG_CURRENT_DESKTOP: 'MATE' }, ['own', 'packaged']],
    ['GNOME', 'linux', 'x64', { ...display, XDG_CURRENT_DESKTOP: 'GNOME' }, ['packaged', 'own']],
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
