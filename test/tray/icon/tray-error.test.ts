import assert from 'node:assert/strict'
import { toTrayError } from '../../../tray/icon/systray.ts'

describe('toTrayError', () => {
  it('names the packages that bring a missing library', () => {
    const error = toTrayError(
      '/x/tray_linux_release: error while loading shared libraries: libappindicator3.so.1: cannot open shared object file: No such file or directory\n',
      'exit code 127',
    )
    assert.equal(error.code, 'tray-library-missing')
    assert.match(error.message, /libappindicator3\.so\.1/)
    for (const name of ['libayatana-appindicator3-1', 'libappindicator-gtk3', 'Arch'])
      assert.ok(error.hint?.includes(name))
  })

  it('says that there is no desktop', () => {
    const error = toTrayError('(x:1): Gtk-WARNING **: cannot open display: :9\n', 'exit code 1')
    assert.equal(error.code, 'tray-no-display')
  })

  it('says how the program exited otherwise, without quoting it', () => {
    const error = toTrayError('panic: something odd', 'SIGSEGV')
    assert.equal(error.code, 'tray-failed')
    assert.match(error.message, /SIGSEGV/)
    assert.doesNotMatch(error.message, /odd/)
  })

  it('says that the processor is the wrong one, and how to fix it on a Mac', () => {
    const arm = { platform: 'darwin', arch: 'arm64' } as const
    for (const ending of ['EBADARCH', 'Unknown system error -86', 'ENOEXEC']) {
      const error = toTrayError('', ending, arm)
      assert.equal(error.code, 'tray-wrong-processor')
      assert.match(error.message, /arm64/)
      assert.match(error.hint ?? '', /softwareupdate --install-rosetta/)
    }
    const onLinux = toTrayError('', 'ENOEXEC', { platform: 'linux', arch: 'riscv64' })
    assert.doesNotMatch(onLinux.hint ?? '', /rosetta/)
    const said = 'tray_linux_release: 2: exec: /x/Doorward: Exec format error\n'
    assert.equal(toTrayError(said, 'exit code 126').code, 'tray-wrong-processor')
  })

  it('names the mount that keeps programs from running', () => {
    const error = toTrayError('', 'EACCES')
    assert.equal(error.code, 'tray-not-runnable')
    assert.match(error.hint ?? '', /noexec/)
  })
})
