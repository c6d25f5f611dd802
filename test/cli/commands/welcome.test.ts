import assert from 'node:assert/strict'
import { join } from 'node:path'
import { resolveHome } from '../../../shared/home/home.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { filesIn, temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { run } from '../support/cli.ts'

describe('doorward alone', () => {
  it('shows the status when the daemon runs', async () => {
    const daemon = await startDaemon()
    try {
      const { code, stdout } = await run([], { home: daemon.home })
      assert.equal(code, 0)
      assert.match(stdout, /^doorward .* at http:\/\/127/)
      const json = await run(['--json'], { home: daemon.home })
      assert.equal((JSON.parse(json.stdout) as { url: string }).url, daemon.url)
    } finally {
      await daemon.stop()
    }
  })

  it('shows a short help when it does not, and starts none', async () => {
    const home = await temporaryHome()
    const { code, stdout, stderr } = await run(['--home', home.root])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^Usage: doorward/)
    assert.match(stdout, /not running/)
    assert.deepEqual(await filesIn(home.run).catch(() => []), [])
    const fresh = resolveHome(join(await temporaryFolder(), 'none'))
    assert.match((await run([], { home: fresh })).stdout, /webhook add github-review/)
  })
})
