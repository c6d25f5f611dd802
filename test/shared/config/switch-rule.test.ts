import assert from 'node:assert/strict'
import { type RuleSwitch, switchRule } from '../../../shared/config-edit/switch-rule.ts'

const file = `# Mine.
webhooks:
  - path: /a # the shop
    agent: echo

    # Below.
    rules:
      # Reviews.
      - name: review
        dry_run: true # for a week
        prompt_template: |
          One
          Two
      - { name: quiet, on: issues, dry_run: true }
  - { path: /b, agent: echo }
  - dry_run: true
    path: /c
  - path: /all
    dry_run: true
    rules:
      - name: one
`

describe('the switches of a rule in webhooks.yaml', () => {
  const change = (wanted: RuleSwitch, text = file) => switchRule(text, wanted)
  /** The lines that differ, with a sign. */
  const difference = (text: string): string[] => {
    const [before, after] = [file.split('\n'), text.split('\n')]
    return [
      ...before.filter((line) => !after.includes(line)).map((line) => `-${line}`),
      ...after.filter((line) => !before.includes(line)).map((line) => `+${line}`),
    ]
  }

  it('are one line more, and one less again', () => {
    for (const [place, lines] of [
      [{ path: '/a' }, ['+    enabled: false']],
      [{ path: '/a', rule: 'review' }, ['+        enabled: false']],
      [
        { path: '/a', rule: 'quiet' },
        [
          '-      - { name: quiet, on: issues, dry_run: true }',
          '+      - { name: quiet, enabled: false, on: issues, dry_run: true }',
        ],
      ],
      [
        { path: '/b' },
        ['-  - { path: /b, agent: echo }', '+  - { path: /b, enabled: false, agent: echo }'],
      ],
    ] as const) {
      const paused = change({ ...place, enabled: false })
      assert.deepEqual(difference(paused), lines)
      assert.equal(change({ ...place, enabled: false }, paused), paused)
      assert.equal(change({ ...place, enabled: true }, paused), file)
    }
  })

  it('take the key of a dry run away, and write it', () => {
    assert.deepEqual(difference(change({ path: '/a', rule: 'review', dryRun: false })), [
      '-        dry_run: true # for a week',
    ])
    assert.deepEqual(difference(change({ path: '/a', rule: 'quiet', dryRun: false })), [
      '-      - { name: quiet, on: issues, dry_run: true }',
      '+      - { name: quiet, on: issues }',
    ])
    assert.match(change({ path: '/c', dryRun: false }), /\n {2}- path: \/c\n/)
    assert.match(change({ path: '/b', dryRun: true }), /path: \/b, dry_run: true, agent/)
    // The webhook says it for all its rules.
    const one = change({ path: '/all', rule: 'one', dryRun: false })
    assert.match(one, /- name: one\n {8}dry_run: false\n/)
    assert.equal(change({ path: '/all', rule: 'one', dryRun: true }, one), file)
  })

  it('keep the ends of lines, and refuse what they cannot change alone', () => {
    const windows = file.replaceAll('\n', '\r\n')
    const paused = change({ path: '/a', enabled: false }, windows)
    assert.equal(paused.replaceAll('\r\n', '').includes('\n'), false)
    assert.equal(change({ path: '/a', enabled: true }, paused), windows)
    const open = 'webhooks:\n  - path: /a'
    assert.equal(change({ path: '/a', enabled: false }, open), `${open}\n    enabled: false\n`)
    const shared = 'webhooks:\n  - path: /a\n    rules:\n      - &r { name: x }\n      - *r\n'
    assert.throws(() => change({ path: '/a', rule: 'x', enabled: false }, shared), {
      code: 'usage',
    })
    assert.throws(() => change({ path: '/none', enabled: false }), { code: 'webhook-not-found' })
    assert.throws(() => change({ path: '/a', rule: 'none', enabled: false }), {
      code: 'webhook-not-found',
    })
  })
})
