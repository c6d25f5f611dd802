import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { ruleSchema } from '../../../../shared/config/webhook-schema.ts'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import { findUnknownEvent } from '../../../../shared/signatures/sender-events.ts'
import { check, linesOf, refuses, webhook } from '../../../support/daemon/config-files.ts'

describe('the path of a webhook', () => {
  const served = (path: string) => linesOf({ webhooks: webhook('', JSON.stringify(path)) })

  const has = (what: string) =>
    `it has ${what} in it; only letters from a to z, digits and - . _ ~ ! $ & ' ( ) * + , ; = : @ are allowed`
  const dot = 'a part of it starts with a dot'
  const empty = 'a part of it is empty'
  for (const [path, fault] of [
    ['/a b', has('a space')],
    ['/a?x', has('"?"')],
    ['/a#x', has('"#"')],
    ['/a%20b', has('"%"')],
    ['/a/../b', dot],
    ['/..', dot],
    ['/a/./b', dot],
    ['/.env', dot],
    ['//a', empty],
    ['/a//b', empty],
    ['/', empty],
    ['a', 'it does not start with /'],
    ['', 'it does not start with /'],
    ['/é', has('"é"')],
    ['/cafe\u0301', has('the character U+0301')],
    ['/a\u200bb', has('the character U+200B')],
    ['/😀', has('"😀"')],
    ['/a\\b', has('"\\"')],
    ['/a\n', has('the character U+000A')],
  ] as const)
    it(`is refused as ${JSON.stringify(path)}, with what is wrong`, () =>
      assert.deepEqual(served(path), [
        `webhooks.yaml:2:5 webhooks[0].path: not a URL path: ${fault}`,
      ]))

  for (const name of ['oauth', 'events', 'webhooks', 'status', 'metrics', 'health', 'daemon'])
    it(`is refused where /${name} belongs to the daemon`, () => {
      for (const path of [`/${name}`, `/${name}/`, `/${name}/more`])
        assert.deepEqual(served(path), [
          `webhooks.yaml:2:5 webhooks[0].path: /${name} is reserved (use /webhook${path})`,
        ])
      assert.deepEqual(served(`/webhook/${name}`), [])
      assert.deepEqual(served(`/${name}-mine`), [])
    })

  it('is refused when another definition is served there, under either address', () => {
    const webhooks = ['/a', '/a', '/webhook/a', '/webhook/b', '/b', '/a/', '/A']
      .map((path) => `  - { path: ${path}, agent: echo, prompt_template: x }\n`)
      .join('')
    assert.deepEqual(linesOf({ webhooks: `webhooks:\n${webhooks}` }), [
      'webhooks.yaml:3:7 webhooks[1].path: path /a is defined twice (first in line 2)',
      'webhooks.yaml:4:7 webhooks[2].path: two definitions would be served at /webhook/a (the other is path /a in line 2)',
      'webhooks.yaml:6:7 webhooks[4].path: two definitions would be served at /webhook/b (the other is path /webhook/b in line 5)',
    ])
  })

  it('is served under /webhook too, unless it begins so', () => {
    const webhooks = `${webhook('', '/a/b/')}  - { path: /webhook/c, agent: echo, prompt_template: x }\n`
    assert.deepEqual(
      check({ webhooks }).webhooks.map(({ urlPaths }) => urlPaths),
      [['/a/b/', '/webhook/a/b/'], ['/webhook/c']],
    )
  })
})

describe('a name in a webhook definition', () => {
  refuses({
    'an agent that is not there, with the nearest': [
      { webhooks: webhook('', '/a', 'eco') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
    ],
    'an agent that is near none, with all there are': [
      { webhooks: webhook('', '/a', 'toString') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "toString" (known: echo, reviewer)',
    ],
    'an agent where there are none': [
      { agents: 'agents: {}\n', webhooks: webhook() },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "echo" (known: none)',
    ],
    'no agent of a file that cannot be read': [
      { agents: 'agents:\n\t- x\n', webhooks: webhook() },
      'agents.yaml:2:1 a tab cannot indent, use spaces',
    ],
    'no agent that is there but wrong in itself': [
      { agents: 'agents:\n  echo: { kind: eco }\n', webhooks: webhook() },
      'agents.yaml:2:11 agents.echo.kind: unknown kind "eco" (did you mean "echo"?)',
    ],
    'a target that is not there, with all there are': [
      {
        webhooks: webhook(
          '    deliver_to: [log, notify, "file:a/", "file:{{evnt.x}}", "file:a\\0b"]\n',
        ),
      },
      'webhooks.yaml:5:23 webhooks[0].deliver_to[1]: unknown target "notify" (one of none, log, notify:desktop, file:<path>, reply, slack:…, telegram:…, discord:…, email:…, github:…, github-review:…, github-check:…, pull-request:…, push:…, gitlab:…, gitlab-review:…, jira:…, linear:…, http:…)',
      'webhooks.yaml:5:31 webhooks[0].deliver_to[2]: target "file:a/" names no file',
      'webhooks.yaml:5:42 webhooks[0].deliver_to[3]: {{evnt.x}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used (did you mean "event"?)',
      'webhooks.yaml:5:61 webhooks[0].deliver_to[4]: the path of the file contains a NUL character',
    ],
    'a target alone': [
      { webhooks: webhook('    deliver_to: notfy:desktop\n') },
      'webhooks.yaml:5:5 webhooks[0].deliver_to: unknown target "notfy:desktop" (did you mean "notify:desktop"?)',
    ],
    'every unknown name of a template': [
      {
        webhooks: webhook(
          '',
          '/a',
          'echo',
          '"{{event.a}} {{evnt.x}} {{event..y}} {{evnt.x}} {{event.a.__proto__}} {{event.constructor}}"',
        ),
      },
      'webhooks.yaml:4:5 webhooks[0].prompt_template: {{evnt.x}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used; {{event..y}}: path "event..y" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"] (did you mean "event"?)',
    ],
    'conditions that lead nowhere': [
      {
        webhooks: webhook('    filter: { a..b: x, .a: x, "a.": x, "": x }\n'),
      },
      'webhooks.yaml:5:15 webhooks[0].filter["a..b"]: path "a..b" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:5:24 webhooks[0].filter[".a"]: path ".a" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:5:31 webhooks[0].filter["a."]: path "a." cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:5:40 webhooks[0].filter[""]: the path is empty',
    ],
    'paths of another language, and headers with a secret': [
      {
        webhooks: webhook(
          '    filter:\n      labels.*.name: x\n      $.ref: x\n      headers.Authorization: x\n      headers.a.b: x\n      any:\n        - list[-1]: x\n',
        ),
      },
      'webhooks.yaml:6:7 webhooks[0].filter["labels.*.name"]: path "labels.*.name" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:7:7 webhooks[0].filter["$.ref"]: path "$.ref" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:8:7 webhooks[0].filter["headers.Authorization"]: this header holds a secret or a signature',
      'webhooks.yaml:9:7 webhooks[0].filter["headers.a.b"]: write headers.<name>, the name of one header',
      'webhooks.yaml:11:11 webhooks[0].filter.any[0]["list[-1]"]: path "list[-1]" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
    ],
    'the header of the signature in a filter': [
      {
        webhooks: webhook('    signature_header: X-Sign\n    filter: { headers.x-sign: x }\n'),
      },
      'webhooks.yaml:5:5 webhooks[0].signature_header: headers.x-sign holds a signature: no template or filter can read it',
    ],
    'tests that are none': [
      {
        webhooks: webhook(
          '    filter:\n      a: x\n      b: { isnt: 1 }\n      c: { glob: 1, above: x, exists: 1 }\n      d: { in: [] }\n      any: { a: 1 }\n      none: x\n      e: { is: 1.10, above: 1.10 }\n',
        ),
      },
      'webhooks.yaml:7:12 webhooks[0].filter.b.isnt: unknown key (did you mean "is"?)',
      'webhooks.yaml:8:12 webhooks[0].filter.c.glob: must be text or a list',
      'webhooks.yaml:8:21 webhooks[0].filter.c.above: must be a number',
      'webhooks.yaml:8:31 webhooks[0].filter.c.exists: must be true or false',
      'webhooks.yaml:9:12 webhooks[0].filter.d.in: must not be empty',
      'webhooks.yaml:10:7 webhooks[0].filter.any: must be a list of maps; a field of that name is written ["any"]',
      'webhooks.yaml:11:7 webhooks[0].filter.none: must be a list of maps; a field of that name is written ["none"]',
    ],
    'groups that are empty': [
      { webhooks: webhook('    filter: { any: [], none: [{}] }\n') },
      'webhooks.yaml:5:15 webhooks[0].filter.any: must not be empty',
    ],
    'maps in a filter that are empty': [
      { webhooks: webhook('    filter: { none: [{ a: 1 }, {}], b: {} }\n') },
      'webhooks.yaml:5:32 webhooks[0].filter.none[1]: must not be empty',
      'webhooks.yaml:5:37 webhooks[0].filter.b: must not be empty',
    ],
    'regular expressions that RE2 does not know, and those that are too large': [
      {
        webhooks: webhook(
          [
            '    filter:',
            "      a: { regex: '(?!wip)x' }",
            String.raw`      b: { regex: ['ok', '(a)\1'] }`,
            "      c: { regex: '[a' }",
            "      d: { regex: 'a{2000}' }",
            "      e: { regex: '(a{50}){50}' }",
            "      h: { regex: '([ab]x){400}' }",
            `      f: { regex: '${'a'.repeat(501)}' }`,
            `      g: { glob: '${'*'.repeat(501)}' }`,
            '',
          ].join('\n'),
        ),
      },
      'webhooks.yaml:6:12 webhooks[0].filter.a.regex: "(?!wip)x" is not a regular expression of RE2: invalid or unsupported Perl syntax: (?! (RE2 has no lookahead and no lookbehind: use several conditions, or none)',
      String.raw`webhooks.yaml:7:12 webhooks[0].filter.b.regex: "(a)\\1" is not a regular expression of RE2: invalid escape sequence: \1 (RE2 has no backreferences)`,
      'webhooks.yaml:8:12 webhooks[0].filter.c.regex: "[a" is not a regular expression of RE2: missing closing ]: [a',
      'webhooks.yaml:9:12 webhooks[0].filter.d.regex: "a{2000}" is not a regular expression of RE2: invalid repeat count: {2000} (repetitions, multiplied where one is in another, go up to 1000)',
      'webhooks.yaml:10:12 webhooks[0].filter.e.regex: "(a{50}){50}" is not a regular expression of RE2: invalid repeat count: {50} (repetitions, multiplied where one is in another, go up to 1000)',
      'webhooks.yaml:11:12 webhooks[0].filter.h.regex: "([ab]x){400}" is too large (repeat fewer times, or write several in a list)',
      `webhooks.yaml:12:12 webhooks[0].filter.f.regex: "${'a'.repeat(60)}…" is longer than 500 characters`,
      `webhooks.yaml:13:12 webhooks[0].filter.g.glob: "${'*'.repeat(60)}…" is longer than 500 characters`,
    ],
  })
})

describe('slack:reply', () => {
  const refusal =
    'slack:reply answers where an event of Slack came from (write signature_scheme: slack, or name a channel)'
  refuses({
    'an answer to Slack by the rule of another sender': [
      {
        webhooks: webhook(
          '    signature_scheme: github\n    rules:\n      - { name: a }\n      - { name: b, deliver_to: [log, "slack:reply"] }\n',
        ),
      },
      `webhooks.yaml:8:20 webhooks[0].rules[1].deliver_to: ${refusal}`,
    ],
    'an answer to Linear by the rule of another sender': [
      { webhooks: webhook('    signature_scheme: github\n    deliver_to: linear:reply\n') },
      'webhooks.yaml:6:5 webhooks[0].deliver_to: linear:reply answers where an event of Linear came from (write signature_scheme: linear, or name an issue)',
    ],
    'an answer to Jira without its settings': [
      { webhooks: webhook('    signature_scheme: jira\n    deliver_to: jira:reply\n') },
      'webhooks.yaml:6:5 webhooks[0].deliver_to: targets.jira.api_url, targets.jira.email, targets.jira.token_env missing in gateway.yaml (write the URL of your site at Jira Cloud, the mail address of your account, and the variable with its API token)',
    ],
  })
})

describe('the age of a delivery', () => {
  refuses({
    'a tolerance where no time is signed': [
      { webhooks: webhook('    signature_scheme: github\n    timestamp_tolerance: 1h\n') },
      'webhooks.yaml:6:5 webhooks[0].timestamp_tolerance: signature_scheme github signs no time (remove it)',
    ],
    'a tolerance for a description without a time': [
      { webhooks: webhook('    timestamp_tolerance: 1h\n') },
      'webhooks.yaml:5:5 webhooks[0].timestamp_tolerance: signature_scheme hmac signs no time (remove it)',
    ],
    'one that is longer than deliveries are remembered': [
      { webhooks: webhook('    signature_scheme: stripe\n    timestamp_tolerance: 25h\n') },
      'webhooks.yaml:6:5 webhooks[0].timestamp_tolerance: must be at most 24h',
    ],
    'late where no sender sends again with the old time': [
      { webhooks: webhook('    signature_scheme: stripe\n    late: 1h\n') },
      'webhooks.yaml:6:5 webhooks[0].late: no sender of signature_scheme stripe is known to send again with an old time (write timestamp_tolerance, or remove it)',
    ],
  })

  it('is that of the scheme unless the definition says otherwise', () => {
    const ages = (scheme: string, more = '') =>
      check({ webhooks: webhook(`    signature_scheme: ${scheme}\n${more}`) }).webhooks.map(
        ({ scheme: { toleranceSeconds, lateSeconds } }) => [toleranceSeconds, lateSeconds],
      )
    assert.deepEqual(ages('stripe'), [[300, undefined]])
    assert.deepEqual(ages('slack', '    timestamp_tolerance: 1h\n'), [[3600, undefined]])
    assert.deepEqual(ages('linear'), [[60, 86_400]])
    assert.deepEqual(ages('linear', '    late: 0s\n    timestamp_tolerance: 2m\n'), [[120, 0]])
    const described =
      "    signed: '{timestamp}.{body}'\n    timestamp_header: x-time\n    timestamp_tolerance: 10s\n"
    assert.deepEqual(ages('hmac', described), [[10, undefined]])
  })
})

describe('rules of a webhook', () => {
  const rules = (text: string, more = '    signature_scheme: github\n') =>
    `webhooks:\n  - path: /a\n${more}    rules:\n${text}`

  it('take what they do not say from their webhook', () => {
    const [given] = check({
      webhooks: rules(
        '      - name: one\n      - { name: two, on: push, agent: reviewer, filter: {}, deliver_to: none }\n      - { name: three, on: [issues.opened], prompt_template: own, accept_risk: false }\n',
        '    signature_scheme: github\n    agent: echo\n    prompt_template: x\n    on: pull_request\n    filter: { a: 1 }\n    deliver_to: log\n    accept_risk: true\n',
      ),
    }).webhooks
    assert.deepEqual(
      given?.rules.map(({ name, on, agentName, prompt, filter, targets, acceptsRisk }) => [
        name,
        on,
        agentName,
        prompt.source,
        filter.length,
        targets.length,
        acceptsRisk,
      ]),
      [
        ['one', ['pull_request'], 'echo', 'x', 1, 1, true],
        ['two', ['push'], 'reviewer', 'x', 0, 0, true],
        ['three', ['issues.opened'], 'echo', 'own', 1, 1, false],
      ],
    )
  })

  refuses({
    'two of one name, and one without an agent or a prompt': [
      {
        webhooks: rules(
          '      - { name: a, agent: echo, prompt_template: x }\n      - { name: a, prompt_template: x }\n      - { name: c, agent: eco }\n',
        ),
      },
      'webhooks.yaml:6:9 webhooks[0].rules[1].agent: missing (write it here, or at the webhook for all its rules)',
      'webhooks.yaml:6:11 webhooks[0].rules[1].name: there are two rules a (the first is in line 5)',
      'webhooks.yaml:7:9 webhooks[0].rules[2].prompt_template: missing (write it here, or at the webhook for all its rules)',
      'webhooks.yaml:7:20 webhooks[0].rules[2].agent: unknown agent "eco" (did you mean "echo"?)',
    ],
    'a rule whose name has a space': [
      { webhooks: rules('      - { name: b c, agent: echo, prompt_template: x }\n') },
      'webhooks.yaml:5:11 webhooks[0].rules[0].name: not the name of a rule (letters, digits, - _ and ., with a letter or a digit first)',
    ],
    'no rule, and a field that belongs to the webhook': [
      { webhooks: `${rules('', '    rules: []\n').split('    rules:\n')[0]}` },
      'webhooks.yaml:3:5 webhooks[0].rules: must not be empty',
    ],
    'a field of the webhook in a rule': [
      {
        webhooks: rules(
          '      - { name: a, agent: echo, prompt_template: x, secret_env: X, deliver_to: lg }\n',
        ),
      },
      `webhooks.yaml:5:53 webhooks[0].rules[0].secret_env: unknown key (known: ${Object.keys(ruleSchema.shape).join(', ')})`,
      'webhooks.yaml:5:68 webhooks[0].rules[0].deliver_to: unknown target "lg" (did you mean "log"?)',
    ],
    'update without a comment that it could edit': [
      {
        webhooks: rules(
          '      - { name: a, deliver_to: file:a.md }\n      - { name: b, update: true }\n',
          '    agent: echo\n    prompt_template: x\n    update: true\n    deliver_to: [log, github-review:a/b#1]\n',
        ),
      },
      'webhooks.yaml:5:5 webhooks[0].update: no target of this rule is github: or slack:, whose messages it edits (remove it, or write github:<owner>/<repo>#<number> or slack:#channel in deliver_to)',
      'webhooks.yaml:9:20 webhooks[0].rules[1].update: no target of this rule is github: or slack:, whose messages it edits (remove it: a review replaces the earlier one of its rule by itself)',
    ],
    'check_name without a check that it could name': [
      {
        webhooks: rules(
          '      - { name: a, check_name: gate, deliver_to: log }\n',
          '    agent: echo\n    prompt_template: x\n',
        ),
      },
      'webhooks.yaml:6:20 webhooks[0].rules[0].check_name: no target of this rule is github-check:, whose check it names (remove it, or write github-check:<owner>/<repo>@<commit> in deliver_to)',
    ],
    'on where the scheme names no event': [
      { webhooks: webhook('    on: push\n') },
      'webhooks.yaml:5:5 webhooks[0].on: signature_scheme hmac does not say where its sender names the event (set signature_scheme to the name of the sender, such as github, or event_header or event_field, or write a filter)',
    ],
  })

  it('may have a limit of runs of their own', () => {
    const [given] = check({
      webhooks: rules(
        '      - name: one\n      - { name: two, max_runs: 3/hour }\n',
        '    agent: echo\n    prompt_template: x\n    max_runs: 50/day\n',
      ),
    }).webhooks
    assert.deepEqual(
      given?.rules.map(({ maxRuns }) => maxRuns),
      [
        { count: 50, perMs: 86_400_000 },
        { count: 3, perMs: 3_600_000 },
      ],
    )
  })

  refuses({
    'coalesce that would never be quiet, or has no key that can be read': [
      { webhooks: webhook('    coalesce: { key: "{{evnt.a}}", quiet: 1m, at_most: 1s }\n') },
      'webhooks.yaml:5:17 webhooks[0].coalesce.key: {{evnt.a}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used (did you mean "event"?)',
      'webhooks.yaml:5:47 webhooks[0].coalesce.at_most: shorter than quiet, so it would never be quiet',
    ],
    'a pull request without a worktree that its agent may change': [
      {
        webhooks: rules(
          '      - { name: a, deliver_to: pull-request:a/b }\n      - { name: b, workspace: { repo: a/b, ref: main } }\n',
          '    agent: echo\n    prompt_template: x\n    workspace: { repo: a/b, ref: main, access: write }\n    deliver_to: pull-request:a/b\n',
        ),
      },
      'webhooks.yaml:6:5 webhooks[0].deliver_to: pull-request: needs a workspace that the agent may change (write workspace: { repo: …, ref: …, access: write })',
    ],
    'coalesce without a key': [
      { webhooks: webhook('    coalesce: { quiet: 1m }\n') },
      'webhooks.yaml:5:5 webhooks[0].coalesce.key: missing',
    ],
    'a limit that is none': [
      { webhooks: webhook('    max_runs: 50/week\n') },
      'webhooks.yaml:5:5 webhooks[0].max_runs: not a number of runs: write it like 50/day or 10/hour',
    ],
  })

  const warningsOf = (webhooks: string) =>
    collectWarnings(check({ webhooks }), {})
      .filter(({ code }) => code === 'event-unknown' || code === 'rules-equal')
      .map(({ code, detail, hint }) => `${code}: ${detail} (${hint})`)

  it('are warned about where their event is misspelt', () => {
    const named = (on: string, scheme = 'github') =>
      warningsOf(webhook(`    signature_scheme: ${scheme}\n    on: ${on}\n`))
    assert.deepEqual(named('[pull_requests, pull_request.opend, pull_request, issues.typed]'), [
      'event-unknown: webhook /a: on has pull_requests, which is no event of github that is known here (did you mean "pull_request"?)',
      'event-unknown: webhook /a: on has pull_request.opend, which is no event of github that is known here (did you mean "pull_request.opened"?)',
    ])
    assert.deepEqual(named('[issues.*, repository_dispatch.deploy, pull_request.new_action]'), [])
    assert.match(named('issue.create', 'linear')[0] ?? '', /did you mean "Issue\.create"\?/)
    assert.deepEqual(named('[invoice.paid, invoice.*]', 'stripe'), [])
  })

  it('are warned about where two are the same', () => {
    const twins = (more: string) =>
      warningsOf(
        rules(
          `      - { name: a, on: push, agent: echo, prompt_template: x }\n      - { name: b, on: push, agent: echo, prompt_template: x${more} }\n`,
        ),
      )
    assert.deepEqual(twins(', deliver_to: log'), [
      'rules-equal: webhook /a: the rules a and b run the same agent with the same prompt for the same events, so it runs twice (remove one, or give one of them the targets of both as a list in deliver_to)',
    ])
    assert.deepEqual(twins(', filter: { a: 1 }'), [])
  })

  it('can name every event and action that GitHub documents', () => {
    const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
      readonly name: string
      readonly actions: readonly string[]
    }[]
    const names = examples.flatMap(({ name, actions }) =>
      actions.length === 0 ? [name] : actions.map((action) => `${name}.${action}`),
    )
    // GitHub sends closed, and says in the payload that it was merged.
    const unknown = names.filter((name) => findUnknownEvent('github', name))
    assert.deepEqual(unknown, [])
    assert.ok(names.length > 200)
  })
})
