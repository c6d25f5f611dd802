import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LiveConfig, readConfig } from '../../../daemon/config/live-config.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import type { Engine } from '../../../daemon/webhook/engine.ts'
import type { Config } from '../../../shared/config/load.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { temporaryHome } from '../../support/temporary.ts'

const complete =
  'webhooks:\n  - path: /s\n    agent: echo\n    prompt_template: x\n    secret_env: S\n'
const truncated = complete.replace(/    secret_env.*\n/, '')
const another = complete.replace('webhooks:\n', '').replace('/s\n', '/t\n')
const silent = () => undefined

describe('an invalid configuration', () => {
  it('is not fixed by a truncated file until the file stays unchanged', async () => {
    const home = await temporaryHome({ webhooks: complete, env: 'S=a-secret-of-the-sender\n' })
    const changes = new EventEmitter()
    const live = new LiveConfig(
      {
        home,
        processEnv: {},
        compile: (config) => ({ config, warnings: [] }) as unknown as Engine,
        onChange: async (config) => void changes.emit('config', config),
        events: new EventStore(10),
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
      await readConfig(home, {}),
      { settle: 500, retry: 10, warn: 1000 },
    )
    // Without a watch on the files only the retry reads them.
    const file = join(home.config, 'webhooks.yaml')
    await writeFile(file, 'webhooks: 1\n')
    await assert.rejects(live.reload(), { code: 'config-invalid' })
    const changed = once(changes, 'config')
    await writeFile(file, truncated)
    const written = performance.now()
    const [{ webhooks }] = (await changed) as [Config]
    assert.deepEqual(webhooks[0]?.secretNames, [])
    assert.ok(performance.now() - written >= 490)
    assert.deepEqual(live.problems(), [])
    await live.close()
  })
})

describe('the warnings of a configuration', () => {
  it('are logged after the start, and after a reload only those that are new', async () => {
    const home = await temporaryHome({ webhooks: truncated, env: '' })
    const logged = new EventEmitter()
    const codes: unknown[] = []
    const note = (warning: object): void => {
      codes.push('code' in warning && warning.code)
      logged.emit('warning')
    }
    const compile = (config: Config): Engine => {
      const warnings = collectWarnings(config, {})
      return { config, warnings } as unknown as Engine
    }
    const live = new LiveConfig(
      {
        home,
        processEnv: {},
        compile,
        onChange: async () => undefined,
        events: new EventStore(10),
        log: { debug: silent, info: silent, warn: note, error: silent },
      },
      await readConfig(home, {}),
      { settle: 500, retry: 10, warn: 1 },
    )
    const first = once(logged, 'warning')
    live.watch()
    await first
    assert.deepEqual(codes, ['webhook-unsigned'])
    await writeFile(join(home.config, 'webhooks.yaml'), `${truncated}${another}`)
    await live.reload()
    assert.deepEqual(codes, ['webhook-unsigned', 'secret-unset'])
    await live.close()
  })
})
