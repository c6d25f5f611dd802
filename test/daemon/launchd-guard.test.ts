import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../shared/home/home.ts'
import { daemonUnderLaunchd, packageFolder } from '../../shared/version.ts'
import { cleanEnvironment } from '../support/daemon/daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

const entry = fileURLToPath(new URL(daemonUnderLaunchd, packageFolder))

/** A folder with an osascript that notes what it is asked to show. */
const notingFolder = async (): Promise<string> => {
  const folder = await temporaryFolder()
  const program = join(folder, 'osascript')
  await writeFile(program, `#!/bin/sh\nprintf '%s\\n' "$*" >>"${folder}/shown"\n`)
  await chmod(program, 0o755)
  return folder
}

const shownIn = async (folder: string): Promise<string[]> =>
  (await readFile(join(folder, 'shown'), 'utf8').catch(() => '')).split('\n').filter(Boolean)

const startedUnder = (home: Home, folder: string) =>
  spawn(process.execPath, [entry, '--home', home.root], {
    env: cleanEnvironment({
      DOORWARD_PORT: '0',
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
    }),
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })

describe('daemon under launchd', () => {
  it('exits with 0 on an invalid configuration, and notifies the person', async () => {
    const home = await temporaryHome({ webhooks: 'webhooks: 1\n' })
    const folder = await notingFolder()
    const child = startedUnder(home, folder)
    const [code] = await once(child, 'exit')
    assert.equal(code, 0)
    assert.match((await shownIn(folder)).join(), /^-e display notification .*doorward daemon start/)
  })

  it('is not started again after too many starts, and counts from zero then', async () => {
    const home = await temporaryHome()
    const folder = await notingFolder()
    await mkdir(home.run, { mode: 0o700 })
    const now = Date.now()
    // Killed five times, the sixth start is the last one.
    const times = [5, 4, 3, 2, 1, 0].map((seconds) => now - seconds * 1000)
    await writeFile(join(home.run, 'launchd-starts'), `${times.join('\n')}\n`)
    const child = startedUnder(home, folder)
    assert.deepEqual(await once(child, 'exit'), [0, null])
    assert.equal((await shownIn(folder)).length, 1)

    const again = startedUnder(home, folder)
    await once(again, 'message')
    again.disconnect()
    const ended = once(again, 'exit')
    again.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
    assert.equal((await shownIn(folder)).length, 1)
  })
})
