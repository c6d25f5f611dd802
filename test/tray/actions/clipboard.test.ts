import assert from 'node:assert/strict'
import { listCopiers } from '../../../tray/actions/diagnostics.ts'

describe('the programs for the clipboard', () => {
  const cases: [NodeJS.Platform, NodeJS.ProcessEnv, string[]][] = [
    ['linux', { DISPLAY: ':0' }, ['xclip', 'xsel']],
    ['linux', { WAYLAND_DISPLAY: 'wayland-0', DISPLAY: ':0' }, ['wl-copy', 'xclip', 'xsel']],
    ['linux', { WSL_DISTRO_NAME: 'Debian' }, ['clip.exe']],
    ['linux', {}, []],
    ['darwin', {}, ['pbcopy']],
    ['win32', {}, ['clip.exe']],
  ]
  for (const [platform, env, programs] of cases)
    it(`are ${programs.join(', ') || 'none'} on ${platform} with ${Object.keys(env).join(', ') || 'nothing'}`, () => {
      assert.deepEqual(
        listCopiers(platform, env).map(([program]) => program),
        programs,
      )
    })
})
