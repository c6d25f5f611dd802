import assert from 'node:assert/strict'
import { trayErrorOf } from '../../tray/tray-error.ts'

describe('trayErrorOf', () => {
  it('names the packages that bring a missing library', () => {
    const error = trayErrorOf(
      '/x/tray_linux_release: error while loading shared libraries: libappindicator3.so.1: cannot open shared object file: No such file or directory\n',
      'exit code 127',
    )
    assert.equal(error.code, 'tray-library-missing')
    assert.match(error.message, /libappindicator3\.so\.1/)
    for (const name of ['libayatana-appindicator3-1', 'libappindicator-gtk3', 'Arch'])
      assert.ok(error.hint?.includes(name))
  })

  it('says that there is no desktop', () => {
    const error = trayErrorOf('(x:1): Gtk-WARNING **: cannot open display: :9\n', 'exit code 1')
    assert.equal(error.code, 'tray-no-display')
  })

  it('says how any other end came about, without the text of the program', () => {
    const error = trayErrorOf('panic: something odd', 'SIGSEGV')
    assert.equal(error.code, 'tray-failed')
    assert.match(error.message, /SIGSEGV/)
    assert.doesNotMatch(error.message, /odd/)
  })
})
