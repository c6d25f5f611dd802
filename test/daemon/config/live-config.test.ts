import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLiveConfig, readConfig } from '../../../daemon/config/live-config.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import type { Engine } from '../../../daemon/webhook/engine.ts'
import type { Config } from '../../../shared/config/load.ts'
import { temporaryHome } from '../../support/temporary.ts'

const whole =
  'webhooks:\n  - path: /s\n    agent: echo\n    prompt_template: x\n    secret_env: S\n'
const cut = whole.replace(/    secret_env.*\n/, '')
const silent = () => undefined

describe('a configuration that was broken', () => {
  it('is not mended by a file that is half written, until that stays so', async () => {
    const home = await temporaryHome({ webhooks: whole, env: 'S=a-secret-of-the-sender\n' })
    const taken = new EventEmitter()
    const live = createLiveConfig(
      {
        home,
        processEnv: {},
        setUp: (config) => ({ config, warnings: [] }) as unknown as Engine,
        changed: async (config) => void taken.emit('config', config),
        events: new EventStore(10),
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
      await readConfig(home, {}),
      { settle: 500, lookAgain: 10 },
    )
    // Nobody watches the files here: there is no other way than to look again.
    const file = join(home.config, 'webhooks.yaml')
    await writeFile(file, 'webhooks: 1\n')
    await assert.rejects(live.reload(), { code: 'config-invalid' })
    const changed = once(taken, 'config')
    await writeFile(file, cut)
    const written = performance.now()
    const [{ webhooks }] = (await changed) as [Config]
    assert.deepEqual(webhooks[0]?.secretNames, [])
    assert.ok(performance.now() - written >= 490)
    assert.deepEqual(live.problems(), [])
    await live.close()
  })
})
