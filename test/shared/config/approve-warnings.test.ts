import assert from 'node:assert/strict'
import { approveDesktopWarnings } from '../../../shared/approve/warnings.ts'
import type { Config } from '../../../shared/config/load.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const socket =
  '{ path: /slack, agent: one, signature_scheme: slack, source: { provider: slack, mode: socket, app_token_env: S }, prompt_template: x, deliver_to: log }'

const read = (rule: string, gateway = '', more = ''): Config =>
  checkConfig(
    readYaml('gateway.yaml', gateway),
    readYaml(
      'agents.yaml',
      'agents: { one: { kind: echo }, yolo: { kind: gemini, args: [--yolo] } }',
    ),
    readYaml(
      'webhooks.yaml',
      `webhooks: [{ path: /a, agent: one, secret_env: S, prompt_template: x, ${rule} }${more}]`,
    ),
    { S: 'set' },
  )

const codes = (...[rule, gateway, more]: Parameters<typeof read>): string[] =>
  collectWarnings(read(rule, gateway, more), { S: 'set' })
    .map(({ code }) => code)
    .filter((code) => code.startsWith('approve-'))

const leaves = 'deliver_to: "slack:#a"'
const bot = 'targets: { telegram: { token_env: S, me: 1 } }'

describe('the warnings of approve', () => {
  it('name places where no one may answer', () => {
    const asked = `${leaves}, approve: { by: ["slack:#ops"] }`
    assert.deepEqual(codes(asked, '', `, ${socket}`), ['approve-by-no-one'])
    assert.deepEqual(codes(`${leaves}, approve: { by: ["telegram:@me"] }`, bot), [
      'approve-by-no-one',
    ])
    assert.deepEqual(codes(`${leaves}, approve: true`), [])
    assert.deepEqual(codes(`${asked}, dry_run: true`), [])
  })

  it('name places where nothing is asked', () => {
    const slack = `${leaves}, approve: { by: ["slack:#ops"], who: { slack: [U024BE7LH] } }`
    assert.deepEqual(codes(slack), ['approve-without-source'])
    assert.deepEqual(codes(slack, '', `, ${socket}`), [])
    const telegram = `${leaves}, approve: { by: ["telegram:@me"], who: { telegram: [1] } }`
    assert.deepEqual(codes(telegram), ['approve-without-source'])
    assert.deepEqual(codes(telegram, 'targets: { telegram: { token_env: S } }'), [
      'approve-without-source',
    ])
    assert.deepEqual(codes(telegram, bot), [])
    assert.deepEqual(codes(`${leaves}, approve: { by: [check] }`), [
      'approve-without-check',
      'approve-by-no-one',
    ])
  })

  it('name rules whose targets need no approval', () => {
    assert.deepEqual(codes('deliver_to: log, approve: true'), ['approve-without-effect'])
    assert.deepEqual(codes('deliver_to: log', 'approve: true'), ['approve-without-effect'])
    assert.deepEqual(codes(`${leaves}, approve: { when: [github] }`), ['approve-without-effect'])
  })

  it('name rules that ask at the desktop alone', () => {
    const both = '{ by: [desktop, "telegram:@me"], who: { telegram: [1] } }'
    const names = (config: Config) => approveDesktopWarnings(config).map(({ code }) => code)
    assert.deepEqual(names(read(`${leaves}, approve: true`)), ['approve-without-desktop'])
    assert.deepEqual(names(read(`${leaves}, approve: ${both}`, bot)), [])
  })
})

describe('the warnings of a schedule', () => {
  const warnings = (entry: string, gateway = '') =>
    collectWarnings(
      checkConfig(
        readYaml('gateway.yaml', gateway),
        readYaml(
          'agents.yaml',
          'agents: { yolo: { kind: gemini, args: [--yolo], network: model } }',
        ),
        readYaml('webhooks.yaml', 'webhooks: []'),
        {},
        undefined,
        readYaml(
          'schedules.yaml',
          `schedules: [{ name: nightly, cron: "0 3 * * *", agent: yolo, ${entry} }]`,
        ),
      ),
      {},
    ).map(({ code, detail, about }) => [code, detail.split(':', 1)[0], about?.file])

  const command = 'context: [command], context_command: [git, log]'
  const reads = `${command}, prompt_template: "{{context.command}}"`

  it('know what a rule of a webhook is warned of', () => {
    const file = 'config/schedules.yaml'
    assert.deepEqual(
      warnings(`${reads}, deliver_to: "slack:#ops"`).map(([code, , at]) => [code, at]),
      [['dangerous-combination', file]],
    )
    assert.deepEqual(warnings(`prompt_template: "{{schedule.name}}", deliver_to: "slack:#ops"`), [])
    assert.deepEqual(warnings(`${reads}, deliver_to: "slack:#ops", accept_risk: true`), [])
    assert.deepEqual(warnings('prompt_template: x, deliver_to: log, approve: true'), [
      ['approve-without-effect', 'schedule nightly', file],
    ])
    assert.deepEqual(
      warnings('prompt_template: x, deliver_to: log', 'budget: { day: 5 }').map(([code]) => code),
      ['budget-not-counted'],
    )
  })
})
