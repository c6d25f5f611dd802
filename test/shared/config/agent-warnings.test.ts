import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import type { Warning } from '../../../shared/config/warning.ts'
import { checkConfig } from '../../../shared/config/load.ts'
import { readYaml } from '../../../shared/config/yaml.ts'
import { check } from '../../support/daemon/config-files.ts'

const signed = { GITHUB_SECRET: 'set' }

const warnings = (agent: string, webhook: string, env: NodeJS.ProcessEnv = signed): Warning[] => {
  const config = checkConfig(
    readYaml('gateway.yaml', ''),
    readYaml('agents.yaml', `agents: { fixer: { ${agent} } }`),
    readYaml(
      'webhooks.yaml',
      `webhooks: [{ path: /a, agent: fixer, secret_env: GITHUB_SECRET, ${webhook} }]`,
    ),
    env,
  )
  return collectWarnings(config, env)
}

describe('the warnings of a configuration', () => {
  const yolo = 'kind: gemini, args: [--yolo]'
  const prompt = 'prompt_template: "{{event.title}}"'
  const leaves = 'deliver_to: [log, "slack:#ops"]'

  it('name text of strangers that reaches an agent with permissions and a target outside', () => {
    assert.deepEqual(warnings(yolo, `${prompt}, ${leaves}`), [
      {
        code: 'dangerous-combination',
        detail:
          'webhook /a gives text that strangers can write to agent fixer, which may change files or run programs on its own (--yolo), and sends its answer out of this machine (slack:#ops): the author of that text can make the agent act and send out what it finds',
        hint: 'take --yolo from the agent, deliver to log, notify:desktop or file:, or leave {{event…}} out of the prompt; accept_risk: true in its entry silences this',
        about: { webhook: '/a', agent: 'fixer' },
      },
    ])
  })

  it('do not, when one of the three is missing, the risk is accepted, or the webhook is off', () => {
    for (const [agent, webhook] of [
      ['kind: gemini', `${prompt}, ${leaves}`],
      [yolo, `prompt_template: "look", ${leaves}`],
      [`${yolo}, network: model`, `${prompt}, deliver_to: [log, "notify:desktop", "file:a.md"]`],
      [yolo, `${prompt}, deliver_to: log, accept_risk: true`],
      [yolo, `prompt_template: "look", deliver_to: log`],
      ['kind: claude, tools: write, cwd: /srv/shop', `${prompt}, deliver_to: log`],
      [yolo, `${prompt}, ${leaves}, accept_risk: true`],
      [yolo, `${prompt}, ${leaves}, enabled: false`],
    ] as const)
      assert.deepEqual(warnings(agent, webhook), [])
  })

  it('name one that runs programs and reaches every host, also where you see each answer first', () => {
    for (const webhook of [
      `${prompt}, deliver_to: log`,
      `${prompt}, ${leaves}, approve: true`,
      `${prompt}, ${leaves}, dry_run: true`,
    ]) {
      const [risk, second] = warnings(yolo, webhook)
      assert.equal(risk?.code, 'dangerous-combination', webhook)
      assert.match(risk?.detail ?? '', /\(--yolo\) and reaches every host of the network/)
      assert.match(risk?.hint ?? '', /^write network: model for the agent/)
      assert.equal(second, undefined)
    }
    for (const closed of ['network: model', 'network: off', 'network: { allow: [a.example] }'])
      assert.deepEqual(warnings(`${yolo}, ${closed}`, `${prompt}, ${leaves}, approve: true`), [])
  })

  describe('of an agent that reads text of strangers and answers outside', () => {
    const risks = (agent: string, webhook = `${prompt}, ${leaves}`) =>
      warnings(agent, webhook).filter(({ code }) => code === 'dangerous-combination')

    it('count reading without a sandbox', () => {
      const reads = "args: [--tools, 'Read,Grep', --allowedTools, 'Read,Grep']"
      const [risk] = risks(`kind: claude, sandbox: off, ${reads}`)
      assert.match(
        risk?.detail ?? '',
        /may read files of yours, .*\(--tools Read,Grep\), and sends/,
      )
      assert.match(
        risk?.hint ?? '',
        /^give the agent a sandbox \(sandbox: required\), or take --tools/,
      )
      assert.match(
        risks('kind: codex, tools: read, sandbox: off')[0]?.detail ?? '',
        /\(tools: read\)/,
      )
      assert.match(
        risks('kind: command, command: [npx, claude, -p]')[0]?.detail ?? '',
        /\(claude\)/,
      )
    })

    it('do not count it in a sandbox, without tools, or where the answer stays', () => {
      for (const agent of [
        'kind: claude',
        'kind: claude, tools: read',
        'kind: claude, tools: write',
        'kind: claude, args: [--tools, Read]',
        'kind: command, command: [claude, -p], sandbox: required',
        'kind: command, command: [wc, -w]',
      ])
        assert.deepEqual(risks(agent), [], agent)
      const off = 'kind: claude, tools: read, sandbox: off'
      assert.deepEqual(risks(off, `${prompt}, deliver_to: log`), [])
      assert.deepEqual(risks(off, `${prompt}, ${leaves}, accept_risk: true`), [])
    })

    it('name an agent that can read its own login in the sandbox', () => {
      const [risk] = risks('kind: codex, tools: read')
      assert.match(risk?.detail ?? '', /read its own login in the sandbox \(codex, tools: read\)/)
      assert.match(risk?.hint ?? '', /^use claude, gemini or opencode with tools: read/)
      assert.equal(risks("kind: claude, args: [--allowedTools, 'Read']").length, 1)
      assert.deepEqual(risks('kind: codex'), [])
      assert.deepEqual(risks('kind: codex, tools: read', `${prompt}, deliver_to: log`), [])
    })

    it('still name what acts on its own, in a sandbox too', () => {
      assert.match(risks(yolo)[0]?.detail ?? '', /run programs on its own \(--yolo\)/)
    })

    it('name tools: write in a project, or in a workspace that it may change', () => {
      const fixer = 'kind: claude, tools: write, sandbox: required'
      const workspace = (access: string) =>
        `${prompt}, ${leaves}, workspace: { repo: acme/shop, ref: main, access: ${access} }`
      for (const found of [risks(`${fixer}, cwd: /srv/shop`), risks(fixer, workspace('write'))]) {
        assert.equal(found.length, 1)
        assert.match(found[0]?.detail ?? '', /may change files .*\(tools: write\), and sends/)
        assert.match(found[0]?.hint ?? '', /^take tools: write from the agent/)
      }
      assert.deepEqual(risks(fixer, workspace('read')), [])
      assert.deepEqual(risks(`${fixer}, cwd: /srv/shop`, `prompt_template: x, ${leaves}`), [])
      assert.deepEqual(risks(`${fixer}, cwd: /srv/shop`, `${prompt}, deliver_to: log`), [])
      const accepted = `${prompt}, ${leaves}, accept_risk: true`
      assert.deepEqual(risks(`${fixer}, cwd: /srv/shop`, accepted), [])
    })
  })

  it('name the keys that an agent cannot do without', () => {
    const openai = 'kind: openai, base_url: "https://a.example/v1", model: m, api_key_env: A_KEY'
    assert.deepEqual(
      warnings(openai, 'prompt_template: x').map(({ code, detail }) => [code, detail]),
      [['agent-key-unset', 'agent fixer: A_KEY is unset or empty; it cannot be asked']],
    )
    assert.deepEqual(warnings(openai, 'prompt_template: x', { ...signed, A_KEY: 'k' }), [])
    const http =
      'kind: http, url: "https://a.example", headers: { a: "env:B", c: plain, d: "env:E" }'
    assert.match(warnings(http, 'prompt_template: x')[0]?.detail ?? '', /: B, E are unset/)
    assert.deepEqual(warnings(http, 'prompt_template: x, enabled: false'), [])
  })

  it('name the variables that an agent would run without, each once', () => {
    const agent = 'kind: claude, env: { A: "env:MY_KEY", B: "env:MY_KEY", C: c, D: "oauth:github" }'
    assert.deepEqual(warnings(agent, 'prompt_template: x', { ...signed, MY_KEZ: 'typo' }), [
      {
        code: 'agent-key-unset',
        detail: 'agent fixer: MY_KEY is unset or empty; it runs without',
        hint: 'set MY_KEY in .env: doorward config edit env',
        about: { agent: 'fixer' },
      },
    ])
    assert.deepEqual(warnings(agent, 'prompt_template: x', { ...signed, MY_KEY: 'k' }), [])
  })

  it('name a conversation that a stranger could go on with, and one that no agent keeps', () => {
    const codesOf = (kind: string, webhook: string) =>
      collectWarnings(
        check({
          agents: `agents: { fixer: { ${kind} } }`,
          webhooks: `webhooks: [{ path: /a, agent: fixer, prompt_template: x, session: '{{subject.key}}', ${webhook} }]`,
        }),
        signed,
      )
        .map(({ code }) => code)
        .filter((code) => code.startsWith('session-'))
    const secret = 'secret_env: GITHUB_SECRET'
    assert.deepEqual(codesOf('kind: claude', 'signature_scheme: github'), ['session-unsigned'])
    assert.deepEqual(codesOf('kind: claude', secret), [])
    const byPublicKey = 'signature_scheme: aws-sns, audience: "arn:aws:sns:eu-west-1:1:t"'
    assert.deepEqual(codesOf('kind: opencode', byPublicKey), [])
    for (const kind of [
      'kind: echo',
      'kind: llm',
      'kind: command, command: [x]',
      'kind: http, url: "https://a.example"',
    ])
      assert.deepEqual(codesOf(kind, secret), ['session-unused'], kind)
  })
})
