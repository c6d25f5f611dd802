import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { ConfigError, checkConfig, loadConfig } from '../../../shared/config/load.ts'
import { parseQueueKeys } from '../../../shared/config/queue.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { temporaryHome } from '../../support/temporary.ts'

const key = Buffer.alloc(32, 1).toString('base64')

const check = (gateway: string, webhook = '', env: NodeJS.ProcessEnv = {}) => {
  const config = checkConfig(
    readYaml('gateway.yaml', `queue: { engine: nats, ${gateway} }`),
    readYaml(
      'agents.yaml',
      'agents: { a: { kind: openai, base_url: http://localhost, model: m, api_key_env: A_KEY } }',
    ),
    readYaml(
      'webhooks.yaml',
      `webhooks: [{ path: /a, agent: a, secret_env: SECRET, prompt_template: hi, ${webhook} }]`,
    ),
    { SECRET: 'set', ...env },
  )
  return collectWarnings(config, { SECRET: 'set', ...env })
}
const codes = (...given: Parameters<typeof check>) => check(...given).map(({ code }) => code)

describe('the queue of several machines', () => {
  it('needs the addresses of its servers and a key, and names the variables that are unset', () => {
    const [unset, ...more] = check('role: receiver')
    assert.deepEqual(more, [])
    assert.equal(
      unset?.detail,
      'queue: NATS_URL, DOORWARD_QUEUE_KEY are unset or empty, so this machine is not connected',
    )
    assert.deepEqual(
      codes('role: receiver', '', { NATS_URL: '127.0.0.1', DOORWARD_QUEUE_KEY: key }),
      [],
    )
  })

  it('takes a list of keys, each of 32 bytes, and shows none that is wrong', () => {
    assert.deepEqual(
      parseQueueKeys(`${key}, ${Buffer.alloc(32, 2).toString('base64url')}`)?.map(
        ({ length }) => length,
      ),
      [32, 32],
    )
    const env = { NATS_URL: 'tls://nats.example:4222', DOORWARD_QUEUE_KEY: 'c2VjcmV0' }
    const [wrong, ...more] = check('role: receiver', '', env)
    assert.deepEqual([wrong?.code, more], ['queue-invalid', []])
    assert.doesNotMatch(JSON.stringify(wrong), /c2VjcmV0/)
  })

  it('warns of a plain connection to another machine', () => {
    const env = { NATS_URL: 'nats://user:word@nats.example', DOORWARD_QUEUE_KEY: key }
    assert.deepEqual(codes('role: receiver', '', env), ['queue-plain'])
    assert.doesNotMatch(JSON.stringify(check('role: receiver', '', env)), /word/)
    assert.deepEqual(codes('role: receiver', '', { ...env, NATS_URL: 'http://nats.example' }), [
      'queue-invalid',
    ])
  })

  it('leaves the keys of agents to workers', () => {
    const env = { NATS_URL: 'localhost:4222', DOORWARD_QUEUE_KEY: key }
    assert.deepEqual(codes('role: both', '', env), ['agent-key-unset'])
    assert.deepEqual(codes('role: worker', '', env), ['agent-key-unset'])
    assert.deepEqual(codes('role: receiver', '', env), [])
  })

  it('asks a worker for no webhooks', async () => {
    const gateway = (role: string) => `queue: { engine: nats, role: ${role} }\n`
    const webhooks = 'webhooks: [{ path: 1 }]\n'
    const worker = await temporaryHome({ gateway: gateway('worker'), webhooks })
    assert.deepEqual((await loadConfig(worker, {})).webhooks, [])
    const receiver = await temporaryHome({ gateway: gateway('receiver'), webhooks })
    await assert.rejects(async () => loadConfig(receiver, {}), ConfigError)
  })

  it('takes `door`, the former name of a receiver', async () => {
    const home = await temporaryHome({
      gateway: 'queue: { engine: nats, role: door }\n',
      webhooks: 'webhooks: []\n',
    })
    assert.equal((await loadConfig(home, {})).gateway.queue.role, 'receiver')
  })

  it('does not deliver to pull-request', () => {
    const workspace = 'workspace: { repo: /tmp/r, ref: main, access: write }'
    assert.throws(
      () =>
        check('role: receiver', `${workspace}, deliver_to: "pull-request:{{event.repository}}"`),
      (error) => error instanceof ConfigError && /not with queue.engine: nats/.test(error.message),
    )
  })
})
