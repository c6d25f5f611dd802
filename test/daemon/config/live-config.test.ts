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

describe('an invalid configuration', () => {})

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
