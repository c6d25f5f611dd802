import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, readFile, readlink, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'dotenv'
import {
  addEntry,
  yamlBlock,
  yamlOneOrList,
  yamlScalar,
  yamlText,
} from '../../../../shared/config-edit/add-entry.ts'
import { type WebhookPreset, webhookPresets } from '../../../../shared/recipes/presets.ts'
import { newWebhook } from '../../../../shared/recipes/new-webhook.ts'
import { webhookEntry } from '../../../../shared/recipes/webhook-entry.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { initHome } from '../../../../shared/home/init-home.ts'
import { type Home, resolveHome } from '../../../../shared/home/home.ts'
import { loadConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import { secretFault } from '../../../../shared/signatures/secrets.ts'
import { check, requiredFields } from '../../../support/daemon/config-files.ts'
import { startDaemon } from '../../../support/daemon/daemon.ts'
import { filesIn, homeIn, temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
import { run } from '../../support/cli.ts'

const readIn = async (home: Home, name: 'webhooks' | 'agents') =>
  readFile(join(home.config, `${name}.yaml`), 'utf8')
const variables = async (home: Home) => parse(await readFile(home.env, 'utf8'))

/** What only the owner of a webhook knows. */
const neededOptions = ({ scheme, needs = [] }: WebhookPreset) => ({
  field: (requiredFields[scheme] ?? [])
    .filter((line) => needs.some((name) => line.startsWith(name)))
    .map((line) =>
      line.startsWith('claims') ? 'claims.repository=acme/shop' : line.replace(': ', '='),
    ),
})

describe('cli: webhook add', () => {
  it('adds to the sample without touching a byte of it, with a secret that it does not print', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const before = await readIn(home, 'webhooks')
    const { code, stdout, stderr } = await run(
      ['webhook', 'add', 'github', '--path', '/webhook/two'],
      { home },
    )
    assert.equal(code, 0, stderr)
    const after = await readIn(home, 'webhooks')
    assert.ok(after.startsWith(before))
    const secret = (await variables(home))['TWO_WEBHOOK_SECRET'] ?? ''
    assert.match(secret, /^[0-9a-f]{64}$/)
    assert.ok(!(stdout + stderr + after).includes(secret))
    assert.equal((await stat(home.env)).mode & 0o777, 0o600)

    const { webhooks } = await loadConfig(home, {})
    const added = webhooks[1]
    assert.deepEqual(
      [added?.path, added?.rules[0]?.agentName, added?.scheme.name, added?.secretNames],
      ['/webhook/two', 'echo', 'github', ['TWO_WEBHOOK_SECRET']],
    )
    const [, line = ''] = /webhooks\.yaml:(\d+)/.exec(stdout) ?? []
    assert.match(after.split('\n')[Number(line)] ?? '', /- path: \/webhook\/two/)
    assert.match(stderr, /webhook send \/webhook\/two --sample github:pull_request\.opened/)
  })

  it('asks for what a sender needs besides a secret, or in place of one', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const add = async (...args: string[]) => run(['webhook', 'add', ...args], { home })
    const discord = await add('discord')
    assert.equal(discord.code, 0, discord.stderr)
    assert.match(discord.stdout, /DISCORD_PUBLIC_KEY, not set yet/)
    assert.match(discord.stderr, /DISCORD_PUBLIC_KEY=\.\.\., the Public Key of the application/)
    const missing = await add('google-pubsub')
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /needs --audience and --service-account/)
    const account = 'push@p.iam.gserviceaccount.com'
    const pubsub = await add('google-pubsub', '--audience', 'a', '--service-account', account)
    assert.equal(pubsub.code, 0, pubsub.stderr)
    assert.doesNotMatch(pubsub.stdout + pubsub.stderr, /SECRET/)
    const topic = 'arn:aws:sns:eu-west-1:1:t'
    const asked = await add('aws-sns', '--audience', topic)
    assert.match(asked.stderr, /refused until the entry has confirm: true/)
    assert.equal((await add('aws-sns', '--audience', topic, '--path', '/two', '--yes')).code, 0)
    const { webhooks } = await loadConfig(home, {})
    assert.deepEqual(
      webhooks
        .slice(1)
        .map(({ secretNames, confirm, scheme }) => [
          scheme.name,
          secretNames,
          confirm,
          scheme.forms[0]?.audience,
        ]),
      [
        ['discord', ['DISCORD_PUBLIC_KEY'], false, undefined],
        ['google-pubsub', [], false, 'a'],
        ['aws-sns', [], false, topic],
        ['aws-sns', [], true, topic],
      ],
    )
  })

  it('writes nothing into a file that is no UTF-8', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const file = join(home.config, 'webhooks.yaml')
    const before = Buffer.concat([await readFile(file), Buffer.from('# caf\xe9\n', 'latin1')])
    await writeFile(file, before)
    const added = await run(['webhook', 'add', 'stripe'], { home })
    assert.equal(added.code, 1)
    assert.match(added.stderr, /webhooks\.yaml:1:1 the file is not UTF-8/)
    assert.deepEqual(await readFile(file), before)
  })

  it('loses nothing when several are added at the same time', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const names = ['one', 'two', 'three', 'four', 'five']
    const added = await Promise.all(
      names.flatMap((name) => [
        run(['webhook', 'add', 'github', '--agent', 'echo', '--path', `/x/${name}`], { home }),
        run(['agent', 'add', 'echo', name], { home }),
      ]),
    )
    for (const { code, stderr } of added) assert.equal(code, 0, stderr)
    const { webhooks, agents } = await loadConfig(home, {})
    const kept = await variables(home)
    for (const name of names) {
      assert.ok(webhooks.some(({ path }) => path === `/x/${name}`))
      assert.ok(agents.has(name))
      assert.match(kept[`X_${name.toUpperCase()}_WEBHOOK_SECRET`] ?? '', /^[0-9a-f]{64}$/)
    }
    assert.ok(!(await filesIn(home.run)).some((file) => file.includes('config.lock')))
  })

  it('prints the secret when it is asked to, and says where a daemon that runs serves it', async () => {
    const daemon = await startDaemon()
    const { home } = daemon
    const args = ['webhook', 'add', 'hmac', '--path', '/x/y', '--show-secret', '--json']
    const { code, stdout, stderr } = await run(args, { home })
    assert.equal(code, 0, stderr)
    const added = JSON.parse(stdout) as Record<string, unknown>
    assert.equal(added['secret'], (await variables(home))['X_Y_WEBHOOK_SECRET'])
    assert.equal(added['reloaded'], true)
    assert.equal(added['url'], `${daemon.url}/x/y`)
    const sent = await run(['webhook', 'send', '/x/y', '-', '--wait'], { home, stdin: '{"a":1}' })
    assert.equal(sent.code, 0, sent.stderr)
    assert.match(sent.stdout, /\{"a":1\}/)
    await daemon.stop()
  })

  it('shows how to read the secret as a command that can be copied, wherever the home is', async () => {
    const home = await homeIn(join(await temporaryFolder(), "Zoë's home"))
    const { code, stderr } = await run(['webhook', 'add', 'github'], { home })
    assert.equal(code, 0, stderr)
    const [, command = ''] = /its secret: (.*)/.exec(stderr) ?? []
    const shown = execFileSync('sh', ['-c', command]).toString()
    assert.match(shown, /^GITHUB_WEBHOOK_SECRET=\S{20,}\n$/)
  })

  it('makes conditions, targets and prompt of its options', async () => {
    const home = await temporaryHome()
    const conditions = [
      '--filter',
      'action=opened',
      '--filter',
      'action=closed',
      '--filter',
      'a.b=2',
    ]
    const targets = ['--deliver-to', 'log', '--deliver-to', 'file:{{event.n}}.md']
    const others = ['--prompt', 'Say: {{event}}', '--secret-env', 'OWN_NAME']
    const options = [...conditions, ...targets, ...others]
    const { code, stderr } = await run(['webhook', 'add', 'github', ...options], { home })
    assert.equal(code, 0, stderr)
    const { value } = readYaml('', await readIn(home, 'webhooks'))
    assert.deepEqual(value, {
      webhooks: [
        {
          path: '/webhook/github',
          agent: 'echo',
          signature_scheme: 'github',
          secret_env: 'OWN_NAME',
          filter: { action: ['opened', 'closed'], 'a.b': 2 },
          prompt_template: 'Say: {{event}}',
          deliver_to: ['log', 'file:{{event.n}}.md'],
        },
      ],
    })
  })

  it('makes a verify token for Meta, which is never the App Secret', async () => {
    const home = await temporaryHome()
    const { code, stdout, stderr } = await run(['webhook', 'add', 'meta'], { home })
    assert.equal(code, 0, stderr)
    const { META_VERIFY_TOKEN: token = '', META_WEBHOOK_SECRET: secret } = await variables(home)
    assert.match(token, /^[0-9a-f]{32}$/)
    assert.equal(secret, undefined)
    assert.ok(!(stdout + stderr).includes(token))
    assert.match(stderr, /its verify token: +grep \^META_VERIFY_TOKEN= /)
    const [webhook] = (await loadConfig(home, {})).webhooks
    assert.deepEqual(webhook?.verifyTokenNames, ['META_VERIFY_TOKEN'])
  })

  it('leaves a secret that the sender makes to be set, or reads it from standard input', async () => {
    const home = await temporaryHome()
    const unset = await run(['webhook', 'add', 'stripe'], { home })
    assert.equal(unset.code, 0)
    assert.match(unset.stdout, /STRIPE_WEBHOOK_SECRET, not set yet/)
    assert.deepEqual(await variables(home), {})
    const given = `whsec_it's "#$\\`
    const set = await run(['webhook', 'add', 'stripe', '--path', '/s', '--secret-stdin'], {
      home,
      stdin: `${given}\n`,
    })
    assert.equal(set.code, 0, set.stderr)
    assert.equal((await variables(home))['S_WEBHOOK_SECRET'], given)
    assert.ok(!(set.stdout + set.stderr).includes(given))
  })

  it('offers a secret to try it with, until the sender has made one', async () => {
    for (const [sender, sample] of [
      ['stripe', 'stripe:invoice.paid'],
      ['slack', 'slack:app_mention'],
    ] as const) {
      const home = await temporaryHome()
      const { stderr } = await run(['webhook', 'add', sender], { home })
      const [, line] = /until then, one to try it with: (\w+_SECRET=\w{32,})$/m.exec(stderr) ?? []
      assert.ok(line !== undefined, stderr)
      const sent = ['webhook', 'send', `/webhook/${sender}`, '--sample', sample, '--wait']
      const before = await run([...sent, '--no-start'], { home })
      assert.match(before.stderr, /_SECRET is unset or empty\nhint: set /)
      await writeFile(home.env, `${line}\n`, { mode: 0o600 })
      assert.ok(stderr.includes(sent.join(' ')))
      const tried = await run(sent, { home })
      assert.equal(tried.code, 0, tried.stderr)
      assert.doesNotMatch((await run(['config', 'check'], { home })).stderr, /_SECRET/)
      await run(['daemon', 'stop'], { home })
    }
  })

  it('keeps a secret that is already set', async () => {
    const home = await temporaryHome({ env: 'GITHUB_WEBHOOK_SECRET=mine # a note\nOTHER=1' })
    const { stdout } = await run(['webhook', 'add', 'github'], { home })
    assert.match(stdout, /already set/)
    assert.equal(await readFile(home.env, 'utf8'), 'GITHUB_WEBHOOK_SECRET=mine # a note\nOTHER=1')
  })

  it('makes a secret where the name has nothing behind it', async () => {
    const home = await temporaryHome({ env: 'GITHUB_WEBHOOK_SECRET=\n' })
    const { stdout } = await run(['webhook', 'add', 'github'], { home })
    assert.match(stdout, /GITHUB_WEBHOOK_SECRET, written to/)
    assert.match((await variables(home))['GITHUB_WEBHOOK_SECRET'] ?? '', /^[0-9a-f]{64}$/)
  })

  it('keeps a link to the file, and its mode', async () => {
    const home = await temporaryHome()
    const elsewhere = join(await temporaryFolder(), 'mine.yaml')
    const path = join(home.config, 'webhooks.yaml')
    await rename(path, elsewhere)
    await symlink(elsewhere, path)
    await chmod(elsewhere, 0o640)
    assert.equal((await run(['webhook', 'add', 'github'], { home })).code, 0)
    assert.equal(await readlink(path), elsewhere)
    assert.equal((await stat(elsewhere)).mode & 0o777, 0o640)
    assert.match(await readFile(elsewhere, 'utf8'), /webhook\/github/)
  })

  it('shows beside an entry without a filter one that fits this sender, and can be used as it is', async () => {
    for (const [name, preset] of Object.entries(webhookPresets)) {
      const { filterExample } = preset
      const options = neededOptions(preset)
      const { lines } = webhookEntry(newWebhook(preset, options, ['echo']), preset)
      const text = lines.join('\n')
      const used = text.replace(/^( *)# (filter:)\n *#( .*)$/m, '$1$2\n$1$3')
      const { value } = readYaml('', used) as { value: { filter: Record<string, string[]> }[] }
      const [path = ''] = Object.keys(value[0]?.filter ?? {})
      if (filterExample === undefined) assert.doesNotMatch(text, /filter:/, name)
      else assert.ok(filterExample.replace(/^'(.*?)'/, '$1').startsWith(`${path}: [`), name)
    }
    const home = await temporaryHome()
    const { stdout } = await run(['webhook', 'add', 'stripe', '--print'], { home })
    assert.match(stdout, /# {3}livemode: \[true\]/)
  })

  it('writes an entry of every sender that can be used, and makes a secret that fits', async () => {
    for (const preset of Object.values(webhookPresets)) {
      const options = { ...neededOptions(preset), yes: true }
      const { lines, value } = webhookEntry(newWebhook(preset, options, ['echo']), preset)
      const text = `webhooks:\n${lines.map((line) => `  ${line}\n`).join('')}`
      const [webhook] = check({ webhooks: text }).webhooks
      assert.deepEqual(readYaml('', text).value, { webhooks: [value] })
      assert.equal(webhook?.scheme.name, preset.scheme)
      assert.equal(
        preset.secret === 'ours' &&
          secretFault(webhook.scheme, 'a1'.repeat(preset.isShort ? 16 : 32)),
        preset.secret === 'ours' ? undefined : false,
        preset.scheme,
      )
    }
  })

  it('writes other fields of the entry, also one of a map', async () => {
    const home = await temporaryHome()
    const oidc = ['webhook', 'add', 'oidc', '--field']
    const missing = await run([...oidc, 'issuer=https://token.example'], { home })
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /needs --audience/)
    const fields = ['issuer=https://token.example', 'audience=a', 'claims.sub=repo:acme/shop']
    const { code, stderr } = await run([...oidc, fields.join('\n')], { home })
    assert.notEqual(code, 0)
    assert.match(stderr, /not an issuer|needs --audience/)
    const each = fields.flatMap((field) => ['--field', field])
    const added = await run(['webhook', 'add', 'oidc', ...each], { home })
    assert.equal(added.code, 0, added.stderr)
    const webhook = (await loadConfig(home, {})).webhooks.at(-1)
    assert.deepEqual(webhook?.scheme.forms[0]?.claims, { sub: 'repo:acme/shop' })
    const unknown = await run(['webhook', 'add', 'hmac', '--field', 'issuerr=x'], { home })
    assert.match(unknown.stderr, /issuerr/)
    const shapeless = await run(['webhook', 'add', 'hmac', '--field', 'issuer'], { home })
    assert.match(shapeless.stderr, /write it as name=value/)
  })

  it('says that a sender signs the public address, and takes the place of a token', async () => {
    const home = await temporaryHome()
    const square = await run(['webhook', 'add', 'square'], { home })
    assert.match(
      square.stderr.replaceAll(/\s+/g, ' '),
      /server\.public_url in gateway\.yaml, which Square signs/,
    )
    const netbox = ['webhook', 'add', 'token', '--path', '/netbox', '--token-in', 'header:X-Key']
    assert.equal((await run(netbox, { home })).code, 0)
    assert.match((await readIn(home, 'webhooks')) ?? '', /token_in: header:X-Key/)
    const alias = await run(['webhook', 'add', 'forgejo', '--print'], { home })
    assert.match(alias.stdout, /signature_scheme: gitea/)
  })

  it('prints the entry alone with --print', async () => {
    const home = await temporaryHome()
    const { stdout, stderr } = await run(['webhook', 'add', 'slack', '--print'], { home })
    assert.equal(stderr, '')
    const { value } = readYaml('', stdout) as { value: { path: string }[] }
    assert.equal(value[0]?.path, '/webhook/slack')
    const asJson = await run(['webhook', 'add', 'slack', '--print', '--json'], { home })
    const printed = JSON.parse(asJson.stdout) as { entry: unknown; text: string }
    assert.deepEqual([[printed.entry], `${printed.text}\n`], [value, stdout])
    assert.equal(await readIn(home, 'webhooks'), 'webhooks: []\n')
  })

  const twoAgents = 'agents: { a: { kind: echo }, b: { kind: echo } }\n'
  const here = 'webhooks:\n  - { path: /webhook/github, agent: echo, prompt_template: x }\n'
  const refused: readonly (readonly [
    string,
    readonly string[],
    Parameters<typeof temporaryHome>[0],
    RegExp,
  ])[] = [
    ['an unknown preset', ['githb'], {}, /no preset "githb"\nhint: did you mean "github"\?/],
    [
      'a path that is there',
      ['github'],
      { webhooks: here },
      /already exists at .*webhooks\.yaml:2\nhint: --path/,
    ],
    [
      'an unknown agent',
      ['github', '--agent', 'eco'],
      {},
      /unknown agent "eco"\nhint: did you mean/,
    ],
    ['an agent that is not clear', ['github'], { agents: twoAgents }, /--agent with one of a, b/],
    ['no agent', ['github'], { agents: 'agents: {}\n' }, /doorward agent add/],
    ['a filter into a prototype', ['github', '--filter', '__proto__=1'], {}, /can be added/],
    [
      'a secret for a name',
      ['github', '--secret-env', 'not a name'],
      {},
      /not the name of a variable/,
    ],
    ['a prompt with a typing error', ['github', '--prompt', '{{evnt.a}}'], {}, /only event/],
    [
      'a list in brackets',
      ['github', '--path', '/b'],
      { webhooks: 'webhooks: [{ path: /a, agent: echo, prompt_template: x }]\n' },
      /the way it is written\nhint: .*--print/,
    ],
  ]
  for (const [what, args, files, message] of refused)
    it(`writes nothing for ${what}`, async () => {
      const home = await temporaryHome(files)
      const before = await readIn(home, 'webhooks')
      const { code, stdout, stderr } = await run(['webhook', 'add', ...args], { home })
      assert.deepEqual([code, stdout], [2, ''], stderr)
      assert.match(stderr, message)
      assert.equal(await readIn(home, 'webhooks'), before)
      assert.equal(await readFile(home.env, 'utf8'), '')
    })

  it('writes nothing into a configuration that is broken, and says where', async () => {
    const home = await temporaryHome({ webhooks: 'webhooks:\n  - path: [\n' })
    const { code, stderr } = await run(['webhook', 'add', 'github'], { home })
    assert.equal(code, 1)
    assert.match(stderr, /webhooks\.yaml:\d+:\d+/)
    assert.equal(await readFile(home.env, 'utf8'), '')
    assert.equal(await readIn(home, 'webhooks'), 'webhooks:\n  - path: [\n')
  })

  it('takes the secret back when the file cannot be written', async () => {
    const home = await temporaryHome()
    // A name so long that nothing can be made beside it.
    const elsewhere = join(await temporaryFolder(), `${'a'.repeat(245)}.yaml`)
    const path = join(home.config, 'webhooks.yaml')
    await rename(path, elsewhere)
    await symlink(elsewhere, path)
    const { code, stderr } = await run(['webhook', 'add', 'github'], { home })
    assert.equal(code, 1)
    assert.match(stderr, /cannot write .*webhooks\.yaml: ENAMETOOLONG/)
    assert.equal(await readFile(home.env, 'utf8'), '')
    assert.equal(await readFile(elsewhere, 'utf8'), 'webhooks: []\n')
  })
})

describe('cli: an entry that is added to a file', () => {
  const preset = webhookPresets['hmac']
  assert.ok(preset)
  const entry = (path: string, prompt = 'Say what it is.\n') =>
    webhookEntry(
      { path, agent: 'echo', on: [], filter: {}, deliverTo: ['log'], prompt, secretEnv: 'S' },
      preset,
    )
  const add = (text: string) => {
    const { value } = readYaml('', text)
    const { webhooks } = (value ?? {}) as { webhooks?: unknown[] | null }
    const one = entry('/new')
    return addEntry(text, 'webhooks', { ...one, expected: [...(webhooks ?? []), one.value] }).text
  }

  const kept = [
    'webhooks:\n  - path: /a # why\n    agent: "x"\n\n\n# the end\n',
    'webhooks:\n    -   path: /a\n',
    '',
    '\ufeffwebhooks:\n  - path: /a\n',
    'webhooks:\n  - prompt_template: |+\n      keeps its blank lines\n\n',
    'webhooks:\n  - prompt_template: |\n      has no line end',
    'webhooks:\n  - prompt_template: >-\n      folded\n  # - path: /old\n',
    "webhooks:\n  - &one { path: /a, b: 'c' }\n  - *one\n",
    'webhooks:\r\n  - path: /a\r\n    agent: x\r\n',
  ]
  for (const text of kept)
    it(`leaves all of ${JSON.stringify(text)} as it is`, () => {
      const added = add(text)
      assert.ok(added.startsWith(text))
      assert.equal(/(?<!\r)\n/.test(added), !text.includes('\r\n'))
    })

  it('takes the place of an empty list', () => {
    for (const text of ['webhooks: [] # none yet\n', 'webhooks: null # none yet\n'])
      assert.match(add(text), /^webhooks: +# none yet\n\n {2}# any sender.*\n {2}- path: \/new\n/)
  })

  it('is refused where the rest would change', () => {
    for (const text of ['webhooks: [a]\n', 'webhooks:\n  - a\n...\n', '---\nwebhooks:\n  - a\n'])
      assert.throws(
        () => add(text),
        (error) => error instanceof DoorwardError && error.code === 'usage',
      )
  })

  const texts = [
    'plain',
    '',
    'true',
    'No',
    'null',
    '~',
    '12',
    '1e3',
    '0x1f',
    "it's",
    'a: b',
    'a #b',
    '- a',
    '{{event}}',
    '@me',
    '&a',
    '*a',
    '!a',
    '%a',
    '`a`',
    '"a"',
    'ends with:',
    ' lead',
    'trail ',
    'a\nb',
    'tab\there',
    'notify:desktop',
    'slack:#general',
    'http://127.0.0.1:1/v1',
    '2026-01-01',
    '\u2028',
    '\ud83d\ude00',
    '<<',
    '=',
    '--tools',
    '-m',
    '/x',
    'a\u0085b',
  ]
  it('reads back every text that it writes', () => {
    for (const text of texts) {
      const line = `a: ${yamlText(text)}\nb: ${yamlOneOrList([text, text])}\n`
      assert.deepEqual(readYaml('', line).value, { a: text, b: [text, text] }, line)
      assert.equal(
        String((readYaml('', `a: ${yamlScalar(text)}\n`).value as { a: unknown }).a),
        text,
      )
      for (const prompt of [text, `x\n${text}`, `x\n\n${text}\n`, `x ${text}\n\n`]) {
        const block = yamlBlock('a', prompt).join('\n')
        assert.deepEqual(readYaml('', `${block}\n`).value, { a: prompt }, block)
      }
    }
  })
})
