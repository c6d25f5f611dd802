import assert from 'node:assert/strict'
import { checkMachines } from '../../../daemon/queue/check.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { version } from '../../../shared/version.ts'

describe('doctor: several machines', () => {
  const gateway = gatewayFileSchema.parse({ queue: { engine: 'nats', role: 'receiver' } })
  const seenAt = '2026-01-02T03:04:05.000Z'
  const role = 'worker' as const
  const worker = { name: 'tower', role, version, seenAt, agents: [] }
  const broker = { connected: true, server: 'nats.example:4222', version: '2.9.10', redelivered: 0 }
  const found = (more: object) =>
    checkMachines(gateway, { broker, machines: [worker], ...more }).map(({ name, status }) => [
      name,
      status,
    ])

  it('says nothing about a queue in memory', () => {
    assert.deepEqual(checkMachines(gatewayFileSchema.parse({})), [])
  })

  it('finds a broker that is away or too old, and a worker that is missing', () => {
    const good = [
      ['broker', 'ok'],
      ['machines', 'ok'],
    ]
    assert.deepEqual(found({}), good)
    assert.deepEqual(found({ broker: { ...broker, connected: false } }), [['broker', 'error']])
    assert.deepEqual(found({ broker: { ...broker, version: '2.8.4' } })[0], ['broker', 'error'])
    assert.deepEqual(found({ broker: { ...broker, problem: 'another key' } })[0], [
      'broker',
      'error',
    ])
    assert.deepEqual(found({ broker: { ...broker, notOffered: 'no runs of a' } })[1], [
      'agents',
      'warning',
    ])
    assert.deepEqual(found({ machines: [] })[1], ['machines', 'warning'])
    assert.deepEqual(found({ agentFaults: [{ agent: 'slow' }] })[2], ['agents', 'warning'])
    assert.deepEqual(found({ broker: undefined }), [['broker', 'warning']])
  })

  it('finds another version, and a clock that is off', () => {
    const machines = [worker, { ...worker, name: 'old', version: '0.0.9', clockMs: -120_000 }]
    assert.deepEqual(found({ machines }).slice(2), [
      ['old', 'warning'],
      ['old', 'warning'],
    ])
  })
})
