import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { readDaemonFile } from '../../shared/client/discovery.ts'
import { type Desktop, describeOnLinux, startDesktop } from '../support/desktop/desktop.ts'
import { temporaryHome } from '../support/temporary.ts'
import { startTray } from '../support/desktop/tray.ts'

describeOnLinux('the tray program', () => {
  let desktop: Desktop

  beforeEach(async () => {
    desktop = await startDesktop()
  })
  afterEach(async () => {
    await desktop.stop()
  })

  it('does not load OpenGL, while other programs that the tray starts may', async () => {
    const home = await temporaryHome()
    const tray = startTray(home, { ...desktop.env, DOORWARD_PORT: '0' })
    try {
      await desktop.untilMenu(([first]) => first?.label.startsWith('Ready') ?? false)
      assert.deepEqual(await glOf(await desktop.iconProcess()), ['GDK_GL=disable'])
      const daemon = await readDaemonFile(home)
      assert.deepEqual(await glOf(daemon?.pid ?? 0), [])
      await desktop.click('Stop daemon and quit')
      assert.equal(await tray.ended, 0)
    } finally {
      await tray.stop()
    }
  })
})

/** The variable for OpenGL in the environment that a process was started with. */
const glOf = async (pid: number): Promise<string[]> => {
  const variables = await readFile(`/proc/${pid}/environ`, 'utf8')
  return variables.split('\0').filter((variable) => variable.startsWith('GDK_GL='))
}
