import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { scheduleProgramWarnings } from '../../../shared/schedules/warnings.ts'
import { check, linesOf, refuses } from '../../support/daemon/config-files.ts'

/** One schedule with these lines, and a time unless they have one. */
const schedule = (more = '', when = 'cron: 0 9 * * *') => ({
  schedules: `schedules:\n  - name: morning\n    agent: echo\n    prompt_template: Hello.\n    ${when}\n${more}`,
})

describe('schedules.yaml', () => {
  it('has the fields of a rule that need no delivery', () => {
    const more =
      '    context: [command]\n    context_command: [date]\n    deliver_to: log\n    budget: { day: 10k tokens }\n'
    const { schedules } = check({
      schedules: `schedules:\n  - name: morning\n    every: 2h\n    agent: reviewer\n    prompt_template: 'Since {{schedule.previous_at}}: {{context.command}}'\n${more}`,
      agents: 'agents:\n  reviewer: { kind: openai, base_url: http://127.0.0.1:1/v1, model: m }\n',
    })
    const [{ name, missed, overlap, jitterMs, webhook } = { name: '', webhook: undefined }] =
      schedules
    assert.deepEqual([name, missed, overlap, jitterMs], ['morning', 'run_once', 'skip', 0])
    assert.equal(webhook?.path, 'schedule:morning')
    assert.deepEqual(
      webhook?.rules[0]?.targets.map(({ kind }) => kind),
      ['log'],
    )
  })

  it('may be missing, empty, and switched off', () => {
    assert.deepEqual(check({}).schedules, [])
    assert.equal(check(schedule('    enabled: false\n')).schedules[0]?.enabled, false)
  })

  it('needs no warning of a stranger: its text is its own', () => {
    const config = check(schedule('    deliver_to: log\n'))
    assert.deepEqual(collectWarnings(config, {}), [])
  })

  it('warns of a time that is over, of a cost without a bound, and of a program that is missing', async () => {
    const agents = 'agents:\n  m: { kind: openai, base_url: http://127.0.0.1:1/v1, model: m }\n'
    const codes = (more: string) =>
      collectWarnings(
        check({
          agents,
          schedules: `schedules:\n  - { name: a, agent: m, prompt_template: x, ${more} }\n`,
        }),
        {},
      ).map(({ code }) => code)
    assert.deepEqual(codes('at: 2020-01-01T00:00'), ['schedule-past'])
    assert.deepEqual(codes("cron: '*/2 * * * *'"), ['schedule-often'])
    assert.deepEqual(codes('every: 1m, budget: { day: 10k tokens }'), [])
    assert.deepEqual(codes('every: 10m'), [])
    const config = check({
      schedules:
        'schedules:\n  - { name: a, every: 1h, agent: echo, prompt_template: x, skip_if: [no-such-program] }\n  - { name: b, every: 1h, agent: echo, prompt_template: x, skip_if: [sh] }\n',
    })
    const found = await scheduleProgramWarnings(config, process.env, '/')
    assert.deepEqual(
      found.map(({ code, detail }) => [code, detail]),
      [
        [
          'schedule-program-missing',
          'schedule a: skip_if names no-such-program, which cannot be run',
        ],
      ],
    )
  })

  refuses({
    'six fields': [
      schedule('', 'cron: "* * * * * *"'),
      'schedules.yaml:5:5 schedules[0].cron: it has 6 fields, not five (minute, hour, day of the month, month, day of the week: 0 9 * * 1-5)',
    ],
    'a day that never comes': [
      schedule('', 'cron: 0 0 31 2 *'),
      'schedules.yaml:5:5 schedules[0].cron: this day never comes',
    ],
    'every second': [
      schedule('', 'every: 1s'),
      'schedules.yaml:5:5 schedules[0].every: must be at least 1m',
    ],
    'two times': [
      schedule('', 'every: 2h\n    at: 2026-12-01T09:00'),
      'schedules.yaml:6:5 schedules[0].at: there is every already (remove one of them)',
    ],
    'an unknown zone': [
      schedule('    timezone: Mars\n'),
      'schedules.yaml:6:5 schedules[0].timezone: not a time zone (write it like Europe/Berlin or UTC)',
    ],
    'a jitter of a day': [
      schedule('    jitter: 1d\n'),
      'schedules.yaml:6:5 schedules[0].jitter: must be at most 1h',
    ],
    'a context without its program': [
      schedule('    context: [command]\n'),
      'schedules.yaml:6:5 schedules[0].context: command needs a program (write context_command: [program, argument, …])',
    ],
  })

  it('refuses values of an event, and webhooks.yaml those of a schedule', () => {
    const [line = ''] = linesOf({
      schedules:
        'schedules:\n  - { name: a, every: 1h, agent: echo, prompt_template: "{{event.title}}" }\n',
    })
    assert.match(line, /no event begins a schedule/)
    const [other = ''] = linesOf({
      webhooks: 'webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{schedule.name}}" }\n',
    })
    assert.match(other, /only schedules\.yaml can have \{\{schedule/)
    assert.deepEqual(
      linesOf({
        schedules:
          'schedules:\n  - { name: a, every: 1h, agent: echo, prompt_template: x }\n  - { name: a, every: 1h, agent: echo, prompt_template: x }\n',
      }),
      ['schedules.yaml:3:7 schedules[1].name: there are two schedules a'],
    )
    const [without = ''] = linesOf({
      schedules: 'schedules:\n  - { name: a, agent: echo, prompt_template: x }\n',
    })
    assert.match(without, /it does not say when/)
  })
})
