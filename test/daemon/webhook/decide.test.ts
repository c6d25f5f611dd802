import assert from 'node:assert/strict'
import { type CompiledWebhook, webhooksByPath } from '../../../daemon/webhook/compiled-webhook.ts'
import { decide, type Decision, type Facts } from '../../../daemon/webhook/decide.ts'
import { ofRule, SeenDeliveries } from '../../../daemon/webhook/dedupe.ts'
import { createEvent, fromWire, toWire } from '../../../daemon/webhook/events/accepted-event.ts'
import { type ReadDelivery, readDelivery } from '../../../daemon/webhook/read-delivery.ts'
import { RunBudgets } from '../../../daemon/webhook/rules/budgets.ts'
import { trustRead } from '../../../daemon/webhook/signatures/verify.ts'
import { check } from '../../support/daemon/config-files.ts'

const webhooks = `webhooks:
  - path: /webhook/github
    signature_scheme: github
    secret_env: SECRET
    agent: echo
    rules:
      - name: review
        on: [pull_request.opened]
        max_runs: 2/day
        prompt_template: 'review {{event.number}}'
        deliver_to: ['file:{{event.number}}.md', 'github:{{event.repo}}#{{event.number}}']
      - name: notes
        on: [pull_request]
        prompt_template: 'note {{event.number}}'
`

describe('the decision about a delivery', () => {
  const env = { SECRET: 'a secret of the tests' }
  const webhook = webhooksByPath(check({ webhooks, env }), env).get('/webhook/github')
  const read = (payload: object, event = 'pull_request'): ReadDelivery =>
    readDelivery({
      webhook: webhook as CompiledWebhook,
      headers: { 'x-github-event': [event], 'x-github-delivery': ['d-1'] },
      receivedAt: new Date(0),
      body: trustRead(Buffer.from(JSON.stringify(payload))),
      signed: true,
      source: undefined,
    })
  const opened = { action: 'opened', number: 7, repo: '../..' }
  let facts: Facts & { deliveries: SeenDeliveries; budgets: RunBudgets }
  /** The kind of the decision, and the rules that run. */
  const namesOf = (decision: Decision): string[] =>
    decision.kind === 'run'
      ? [...decision.due, 'over', ...decision.overBudget].map((rule) =>
          typeof rule === 'string' ? rule : (rule.name ?? ''),
        )
      : [decision.kind]
  const ranAs = (id: string, rule: string) => {
    const key = ofRule(read(opened).key, rule)
    assert.ok(key)
    facts.deliveries.remember(key, id, 0)
  }

  beforeEach(() => {
    facts = {
      deliveries: new SeenDeliveries(),
      budgets: new RunBudgets(),
      groups: { hasWaiting: () => false, newerThan: () => undefined },
      loopGuard: { ownDetail: () => undefined },
    }
  })

  it('is to run each rule that matches', () => {
    assert.deepEqual(namesOf(decide(read(opened), facts, 0)), ['review', 'notes', 'over'])
    assert.deepEqual(namesOf(decide(read({ ...opened, action: 'closed' }), facts, 0)), [
      'notes',
      'over',
    ])
  })

  it('is filtered, with the reason of each rule, where none matches', () => {
    const decision = decide(read(opened, 'push'), facts, 0)
    assert.equal(decision.kind, 'filtered')
    assert.match(decision.detail, /^no rule matches \(review: .*; notes: .*\)$/)
  })

  it('is a duplicate once every rule has run it, and until then runs only the others', () => {
    ranAs('evt_a', 'review')
    const partly = decide(read(opened), facts, 0)
    assert.deepEqual(namesOf(partly), ['notes', 'over'])
    assert.equal(partly.kind === 'run' && partly.isRepeat, true)
    ranAs('evt_b', 'notes')
    assert.deepEqual(decide(read(opened), facts, 0), {
      kind: 'duplicate',
      detail: 'the same delivery as evt_a, evt_b',
      of: ['evt_a', 'evt_b'],
    })
  })

  it('filters a rule that has used up its max_runs, and no other', () => {
    const [review] = read(opened).webhook.rules
    assert.ok(review)
    for (let runs = 0; runs < 2; runs += 1) facts.budgets.count(review, 0)
    assert.deepEqual(namesOf(decide(read(opened), facts, 0)), ['notes', 'over', 'review'])
  })

  it('asks for a handshake first, then for what this home wrote, then for the rules', () => {
    const own = { ...facts, loopGuard: { ownDetail: () => 'it is about our own comment' } }
    assert.equal(decide(read(opened, 'ping'), own, 0).kind, 'handshake')
    assert.equal(decide(read(opened), own, 0).kind, 'own')
    const caughtUp = { ...own, isCaughtUp: () => true }
    const ping = read(opened, 'ping')
    assert.equal(decide(ping, caughtUp, 0).kind, 'handshake')
    const source = { provider: 'github', repository: 'acme/door', hookId: 1 } as const
    const polled = { ...ping, webhook: { ...ping.webhook, source } }
    assert.equal(decide(polled, caughtUp, 0).kind, 'duplicate')
  })

  it('changes nothing: the same delivery is decided the same again', () => {
    assert.deepEqual(decide(read(opened), facts, 0), decide(read(opened), facts, 0))
  })

  it('becomes an event that another process reads as it was made', () => {
    const delivery = read(opened)
    const [rule] = delivery.webhook.rules
    assert.ok(rule)
    const event = createEvent(rule, delivery)
    assert.deepEqual(
      [event.prompt.includes('7'), event.targets.map(({ kind }) => kind), event.known],
      [
        true,
        ['file', 'invalid'],
        {
          webhook: '/webhook/github',
          rule: 'review',
          agent: 'echo',
          subject: { key: 'pull_request.opened', title: 'pull_request.opened', kind: 'event' },
          size: delivery.body.bytes.length,
          deliveryId: 'd-1',
          signed: true,
          source: undefined,
        },
      ],
    )
    const wire = toWire(event)
    assert.ok(!JSON.stringify(wire).includes(event.prompt))
    const { targets, ...back } = fromWire(structuredClone(wire), event.prompt)
    const { webhook: own, targets: made, detail: _detail, ...rest } = event
    const { path, agentName, agent, values } = own
    assert.deepEqual(back, {
      ...rest,
      webhook: { path, agentName, agent, values },
    })
    const reasons = (given: typeof made) =>
      given.map((target) => (target.kind === 'invalid' ? target.error.message : target.text))
    assert.deepEqual(reasons(targets), reasons(made))
  })
})
