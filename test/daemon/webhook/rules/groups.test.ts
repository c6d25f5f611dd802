import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import type { CompiledRule } from '../../../../daemon/webhook/compiled-webhook.ts'
import { webhooksByPath } from '../../../../daemon/webhook/compiled-webhook.ts'
import {
  type Coalesced,
  EventGroups,
  toCoalesced,
} from '../../../../daemon/webhook/rules/groups.ts'
import { check } from '../../../support/daemon/config-files.ts'
import { scopeOf } from '../../../support/scope.ts'

const env = { SECRET: 'a secret of the tests' }
const ruleOf = (scheme: string, more = ''): CompiledRule => {
  const webhooks = `webhooks:
  - path: /webhook/a
    signature_scheme: ${scheme}
    secret_env: SECRET
    agent: echo
    prompt_template: 'x'
    coalesce: { key: k${more} }
`
  const webhook = webhooksByPath(check({ webhooks, env }), env).get('/webhook/a')
  const [rule] = webhook?.rules ?? []
  assert.ok(rule)
  return rule
}
const coalesce = (rule: CompiledRule, payload: unknown): Coalesced => {
  const coalesced = toCoalesced(rule, scopeOf(payload), new Date(0))
  assert.ok(typeof coalesced === 'object')
  return coalesced
}
const orderOf = (rule: CompiledRule, payload: unknown) => coalesce(rule, payload).order

describe('which of two events is newer', () => {
  const time = '2026-11-27T10:00:05Z'
  const ms = Date.parse(time)

  it('is told by updated_at at GitHub, GitLab and Gitea', () => {
    const rules = ['github', 'gitlab', 'gitea'].map((scheme) => ruleOf(scheme))
    const payloads = [
      { pull_request: { updated_at: time }, repository: { updated_at: '2027-01-01T00:00:00Z' } },
      { object_attributes: { updated_at: '2026-11-27 10:00:05 UTC' }, project: {} },
      { issue: { updated_at: '2026-11-01T00:00:00Z' }, comment: { updated_at: time } },
    ]
    for (const [index, payload] of payloads.entries())
      assert.equal(orderOf(rules[index] ?? ruleOf('github'), payload), ms)
    const [github = ruleOf('github')] = rules
    for (const payload of [{ repository: { updated_at: time } }, { a: { updated_at: 'x 1' } }, []])
      assert.equal(orderOf(github, payload), undefined)
    assert.equal(orderOf(ruleOf('stripe'), { object: { updated_at: time } }), undefined)
  })

  it('is told by a number or time of order_by', () => {
    const rule = ruleOf('github', ", order_by: '{{event.version}}'")
    const versions = [7, '7.5', time, '2026-11-27T11:00:05+01:00', 'v7', '', null, '9'.repeat(40)]
    assert.deepEqual(
      versions.map((version) =>
        orderOf(rule, { version, issue: { updated_at: '2030-01-01T00:00:00Z' } }),
      ),
      [7, 7.5, ms, ms, undefined, undefined, undefined, undefined],
    )
  })

  it('is told by the arrival where times are equal or missing', () => {
    const rule = ruleOf('github', ", order_by: '{{event.n}}'")
    const groups = new EventGroups(new EventStore(10))
    const actions = { cancel: () => undefined, trigger: () => undefined }
    groups.join('evt_1', new Date(0), coalesce(rule, { n: 5 }), actions)
    const why = [4, 5, 6, 'x'].map((n) => groups.newerThan(coalesce(rule, { n })))
    assert.deepEqual(why, ['a newer event came before it: evt_1', undefined, undefined, undefined])
  })
})
