import assert from 'node:assert/strict'
import {
  findAgentFaults,
  toAgentProblem,
  toSettings,
} from '../../../../daemon/queue/nats/agent-faults.ts'
import { type Agent, agentSchema } from '../../../../shared/agents/schema.ts'
import { version } from '../../../../shared/version.ts'

describe('the agents of several machines', () => {
  const toAgent = (text: object): Agent => agentSchema.parse(text)
  const review = toAgent({ kind: 'claude', tools: 'none' })
  const machine = (name: string, agent: Agent | undefined, of = version) => ({
    name,
    role: 'worker' as const,
    version: of,
    seenAt: '2026-01-02T03:04:05.000Z',
    agents: agent ? [{ name: 'review', running: 0, free: 1, settings: toSettings(agent) }] : [],
  })
  const faults = (...machines: Parameters<typeof findAgentFaults>[1]) =>
    findAgentFaults(new Map([['review', review]]), machines)

  it('are missing where no machine has one that a rule names', () => {
    assert.deepEqual(faults(machine('a', undefined)), [{ agent: 'review' }])
    assert.deepEqual(faults(machine('a', undefined), machine('b', review)), [])
  })

  it('differ in what decides what an agent does, and not in what a machine has of its own', () => {
    const other = toAgent({ kind: 'claude', tools: 'read', args: ['--model', 'opus'] })
    const found = faults(machine('a', review), machine('b', other))
    assert.deepEqual(found, [{ agent: 'review', machine: 'b', keys: ['args', 'tools'] }])
    assert.match(
      toAgentProblem(found[0] ?? { agent: '' }).detail,
      / on b differs .* in args, tools$/,
    )
    const own = toAgent({ kind: 'claude', tools: 'none', concurrency: 4, env: { A: 'b' } })
    assert.deepEqual(faults(machine('a', own)), [])
  })

  it('are not compared between versions, or with a machine that does not tell', () => {
    const other = toAgent({ kind: 'claude', tools: 'read' })
    const { agents, ...rest } = machine('a', other)
    const older = {
      ...rest,
      agents: agents.map(({ name, running, free }) => ({ name, running, free })),
    }
    assert.deepEqual(faults(machine('b', other, '0.0.1'), older), [])
  })

  it('tell no setting, only whether it is the same', () => {
    assert.ok(
      !JSON.stringify(toSettings(toAgent({ kind: 'claude', args: ['--model', 'opus'] }))).includes(
        'opus',
      ),
    )
  })
})
