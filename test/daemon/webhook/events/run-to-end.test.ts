import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import { Sessions } from '../../../../daemon/sessions/sessions.ts'
import type { AcceptedEvent } from '../../../../daemon/webhook/events/accepted-event.ts'
import { createRunToEnd } from '../../../../daemon/webhook/events/run-to-end.ts'
import type { Log } from '../../../../daemon/log/log.ts'
import { UsageLog } from '../../../../daemon/usage/usage-log.ts'

const spin = (ms: number): void => {
  for (const until = performance.now() + ms; performance.now() < until;);
}
const othersMs = 400

describe('the times of a run', () => {
  it('hold nothing of the jobs that start once its agent is free', async () => {
    const events = new EventStore(10)
    const targets = [{ target: 'log', state: 'waiting' as const, attempts: 0 }]
    const { id } = events.add(new Date(), { state: 'queued', targets })
    const runToEnd = createRunToEnd({
      prepareWorkspace: async () => assert.fail('it has no workspace'),
      askGithub: async () => assert.fail('it has no context'),
      signs: { checkOf: async () => undefined },
      requireRole: async () => undefined,
      sessions: new Sessions({ follow: () => () => undefined }),
      listChange: async () => assert.fail('it has no paths'),
      invoke: async () => ({ text: 'answer', cut: false }),
      marks: undefined,
      deliver: async () => [],
      preview: async () => assert.fail('nothing is held back'),
      leavingOf: () => undefined,
      inspect: async ({ text }) => ({ text, detail: '', refusal: undefined }),
      events,
      usage: new UsageLog(),
      log: {} as Log,
    })
    const { state, durations } = await runToEnd({
      id,
      event: {
        webhook: { agent: {} },
        known: {},
        prompt: '',
        targets: [],
      } as unknown as AcceptedEvent,
      answer: undefined,
      queuedMs: 5,
      signal: new AbortController().signal,
      change: () => undefined,
      saw: () => undefined,
      agentIsDone: () => spin(othersMs),
    })
    assert.equal(state, 'done')
    assert.equal(durations?.queuedMs, 5)
    assert.ok((durations.agentMs ?? othersMs) < othersMs)
    assert.ok((durations.deliverMs ?? othersMs) < othersMs)
  })
})
