import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systrayVersion } from '../../../shared/runtime.ts'
import { hasMissedPanel, startSystray } from '../../../tray/icon/systray.ts'
import { describeOnLinux } from '../../support/desktop/desktop.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const ready = `echo '{"type": "ready"}'`
const critical = `(tray_linux_release:7): GLib-GIO-CRITICAL **: 13:03:49.481: g_dbus_proxy_new: assertion 'G_IS_DBUS_CONNECTION (connection)' failed`

describeOnLinux('a tray program', () => {
  let folder: string

  beforeEach(async () => {
    folder = await temporaryFolder()
  })
  const inFolder = (name: string) => join(folder, name)
  /** Starts a shell script as the tray program; it stands in its folder. */
  const start = async (...script: string[]) => {
    await mkdir(inFolder(systrayVersion))
    const lines = ['#!/bin/sh', `cd '${folder}'`, ...script, '']
    await writeFile(join(folder, systrayVersion, 'tray_linux_release'), lines.join('\n'), {
      mode: 0o755,
    })
    const face = { rows: [{ text: 'Ready' }], icon: inFolder('icon'), tooltip: '' }
    return startSystray(folder, face, () => undefined)
  }

  it('gets its menu even when it is ready before its icon has been read', async () => {
    // Reading the icon takes until the program, which is ready by then, has written it.
    execFileSync('mkfifo', [inFolder('icon')])
    const keepsMenu = `read -r menu; printf '%s' "$menu" >menu`
    const icon = await start(ready, 'printf png >icon', keepsMenu, 'read -r exit')
    await icon.stop()
    const menu = JSON.parse(await readFile(inFolder('menu'), 'utf8')) as {
      icon: string
      items: { title: string }[]
    }
    assert.equal(menu.icon, Buffer.from('png').toString('base64'))
    assert.deepEqual(
      menu.items.map(({ title }) => title),
      ['Ready'],
    )
  })

  it('is stopped when it has missed the panel, so that it can be started again', async () => {
    await writeFile(inFolder('icon'), 'png')
    const icon = await start(ready, 'read -r menu', `echo "${critical}" >&2`, 'read -r exit')
    // A shell that is held up for long is killed.
    assert.match(await icon.ended, /^(exit code 0|SIGKILL)$/)
  })
})

describe('the warnings of a tray program', () => {
  it('show that it missed the panel', () => {
    assert.ok(hasMissedPanel(`\n${critical}\n`))
    // GLib before 2.36 quoted so.
    assert.ok(hasMissedPanel(critical.replace("'G_IS", '`G_IS')))
    for (const other of [
      '',
      "(x:1): Gtk-CRITICAL **: 13:03:49.481: gtk_widget_get_scale_factor: assertion 'GTK_IS_WIDGET (widget)' failed",
      '(x:1): libayatana-appindicator-WARNING **: Unable to get the session bus: no such file',
    ])
      assert.ok(!hasMissedPanel(other))
  })
})
