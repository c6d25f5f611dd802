import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../../shared/api/api.ts'
import { resolveHome } from '../../../../shared/home/home.ts'
import { readSample } from '../../../../shared/samples/samples.ts'
import { type SchemeName, schemeNames } from '../../../../shared/signatures/presets.ts'
import { servicePresets } from '../../../../shared/signatures/service-presets.ts'
import { specialPresets } from '../../../../shared/signatures/special-presets.ts'
import type { Context } from '../../../../cli/context.ts'
import { webhookPresets } from '../../../../shared/recipes/presets.ts'
import { type SendOptions, sendWebhook } from '../../../../cli/commands/webhook/send.ts'
import { requiredFields } from '../../../support/daemon/config-files.ts'
import { send as request } from '../../../support/servers/http.ts'
import { schemeNamed } from '../../../support/daemon/accepts.ts'
import { type RunningDaemon, startDaemon } from '../../../support/daemon/daemon.ts'
import { publicUrl, senders } from '../../../support/servers/senders.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import { run, stopStarted } from '../../support/cli.ts'

/** That of a sender, who has the private key. */
const publicKey = (algorithm: 'ed25519' | 'ecdsa-p256'): string => {
  const pair =
    algorithm === 'ed25519'
      ? generateKeyPairSync('ed25519')
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
}

const secrets: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(specialPresets).map((name) => [name, `secret-of-${name}`])),
  ...Object.fromEntries(senders.map(({ scheme, secret }) => [scheme, secret])),
  hmac: 'secret of hmac',
  github: 'secret of github',
  stripe: 'whsec_secret-of-stripe',
  slack: '0123456789abcdef0123456789abcdef',
  'standard-webhooks': 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  gitlab: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  shopify: 'shpss_secret-of-shopify',
  linear: 'lin_wh_secret-of-linear',
  sentry: 'secret of sentry',
  'gitlab-token': 'secret of gitlab: tür',
  token: 'secret of a bearer',
  ...Object.fromEntries(Object.keys(servicePresets).map((name) => [name, `secret-of-${name}`])),
  line: '0123456789abcdef0123456789abcdef',
  airtable: 'c2VjcmV0IG9mIGFpcnRhYmxl',
  adyen: 'ab'.repeat(32),
  ...Object.fromEntries(
    ['resend', 'clerk', 'openai', 'supabase'].map((name) => [
      name,
      `whsec_${Buffer.from(`secret of ${name} here`).toString('base64')}`,
    ]),
  ),
  discord: publicKey('ed25519'),
  telnyx: publicKey('ed25519'),
  sendgrid: publicKey('ecdsa-p256'),
  'public-key': publicKey('ed25519'),
  plaid: '0123456789abcdef0123456789abcd',
  netlify: 'secret of netlify',
  monday: 'secret of monday',
  broken: 'whsec_not base64',
}
const variableOf = (name: string) => `SECRET_${name.toUpperCase().replaceAll('-', '_')}`
const definition = (name: string, scheme = name) => {
  const field = webhookPresets[scheme]?.keyField ?? 'secret_env'
  const needed = (requiredFields[scheme] ?? []).filter(
    (line) => !/^(secret|public_key)_env/.test(line),
  )
  const lines = [
    `path: /webhook/${name}`,
    'agent: echo',
    `signature_scheme: ${scheme}`,
    ...(field === 'none' ? [] : [`${field}: ${variableOf(name)}`]),
    ...needed,
    'prompt_template: "{{event}}"',
    // No login here can be asked for the roles of those in the samples.
    ...(/^git(hub|lab)$/.test(scheme) ? ['who: anyone'] : []),
  ]
  return `\n  - ${lines.join('\n    ')}`
}

describe('cli: webhook send', () => {
  let daemon: RunningDaemon
  let folder: string
  const variables = Object.fromEntries(
    Object.entries(secrets).map(([name, secret]) => [variableOf(name), secret] as const),
  )
  const send = async (args: readonly string[], stdin?: string) => {
    const result = await run(['webhook', 'send', ...args, '--wait', '--json'], {
      home: daemon.home,
      env: variables,
      ...(stdin === undefined ? {} : { stdin }),
    })
    for (const secret of Object.values(secrets))
      assert.ok(!`${result.stdout}${result.stderr}`.includes(secret))
    return result
  }
  /** What the command does with `--wait --json`, in this process: a hundred of their own take a minute. */
  const event = async (
    path: string,
    payload: string | undefined,
    options: SendOptions = {},
  ): Promise<EventDetail> => {
    const file = join(folder, 'payload')
    if (payload !== undefined) await writeFile(file, payload)
    const written: string[] = []
    const keep = (text: string) => void written.push(text)
    const ended: EventDetail[] = []
    const terminal = {
      json: true,
      isInteractive: false,
      print: keep,
      say: keep,
      warn: keep,
      printJson: (value: EventDetail) => {
        keep(JSON.stringify(value))
        ended.push(value)
      },
    }
    const context = { home: daemon.home, terminal, start: false, userAgent: 'test' }
    const args = [path, payload === undefined ? undefined : file]
    await sendWebhook(context as unknown as Context, args, { ...options, wait: true })
    for (const secret of Object.values(secrets)) assert.ok(!written.join('\n').includes(secret))
    assert.equal(ended.length, 1, written.join('\n'))
    return ended[0] as EventDetail
  }

  before(async () => {
    folder = await temporaryFolder()
    daemon = await startDaemon({
      env: Object.entries(variables)
        .map(([name, secret]) => `${name}='${secret}'\n`)
        .join(''),
      gateway: `server: { public_url: ${publicUrl} }\n`,
      webhooks: `webhooks:${schemeNames.map((name) => definition(name)).join('')}${definition('gitlab-token', 'gitlab')}${definition('broken', 'standard-webhooks')}
  - { path: /webhook/picky, agent: echo, prompt_template: x, filter: { action: closed } }
  - { path: /webhook/off, agent: echo, prompt_template: x, enabled: false }
  - { path: /webhook/mute, agent: echo, prompt_template: "{{event.text}}" }\n`,
      variables,
    })
  })
  after(async () => {
    await daemon.stop()
  })

  it('says that an answer is empty, as events and events show do', async () => {
    const { home } = daemon
    const sent = await run(['webhook', 'send', '/webhook/mute', '-', '--wait'], {
      home,
      stdin: '{"text":" "}',
    })
    assert.equal(sent.code, 0)
    assert.match(sent.stderr, /^the answer is empty$/m)
    const [id = ''] = /evt_\w+/.exec(sent.stderr) ?? []
    const shown = await run(['events', 'show', id], { home })
    assert.match(shown.stdout, /^the answer is empty$/m)
    const listed = await run(['events', '--webhook', '/webhook/mute'], { home })
    assert.match(listed.stdout, new RegExp(`^${id.slice(4, 12)} .*: the answer is empty `, 'm'))
  })

  for (const name of [...schemeNames, 'gitlab-token'])
    it(`signs as the sender of ${name} does`, async () => {
      const body = name === 'websub' ? '<feed><type>x</type></feed>' : '{"type":"x","id":"a-1"}'
      const sent =
        name === 'adyen'
          ? event('/webhook/adyen', undefined, { sample: 'adyen:AUTHORISATION' })
          : event(`/webhook/${name}`, body)
      const { state, result } = await sent
      assert.equal(state, 'done')
      // Amazon SNS sends it as text.
      assert.match(result ?? '', name === 'adyen' ? /AUTHORISATION/ : /\\?"type\\?":\\?"x\\?"/)
    })

  it('makes a key pair where only the sender has the private key, for one delivery', async () => {
    const { stderr } = await run(['webhook', 'send', '/webhook/telnyx', '-'], {
      home: daemon.home,
      env: variables,
      stdin: '{"data":{"id":"a-2"}}',
    })
    assert.match(stderr, /only Telnyx has its private key: .* a key made for it, .* accepts once/)
    const { privateKey, publicKey: key } = generateKeyPairSync('ed25519')
    const pem = key.export({ type: 'spki', format: 'pem' }).toString()
    const asked = { path: '/webhook/telnyx', key: pem }
    const { id } = await daemon.client.post<{ id: string }>('/webhooks/test-key', asked)
    const post = async (path: string, testKey: string, body: string) => {
      const time = String(Math.floor(Date.now() / 1000))
      const signature = sign(null, Buffer.from(`${time}|${body}`), privateKey).toString('base64')
      const headers = {
        'content-type': 'application/json',
        'telnyx-timestamp': time,
        'telnyx-signature-ed25519': signature,
        'doorward-test-key': testKey,
      }
      return (await request(`${daemon.url}${path}`, { body, headers })).status
    }
    assert.equal(await post('/webhook/telnyx', 'another', '{"n":1}'), 401)
    assert.equal(await post('/webhook/discord', id, '{"n":1}'), 401)
    assert.equal(await post('/webhook/telnyx', id, '{"n":1}'), 202)
    assert.equal(await post('/webhook/telnyx', id, '{"n":2}'), 401)
    await assert.rejects(daemon.client.post('/webhooks/test-key', { ...asked, key: 'no key' }), {
      code: 'request-invalid',
    })
    await assert.rejects(daemon.client.post('/webhooks/test-key', { ...asked, path: '/none' }), {
      code: 'webhook-not-found',
    })
    const unasked = await request(`${daemon.url}/webhooks/test-key`, {
      body: JSON.stringify(asked),
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(unasked.status, 401)
  })

  it('says how to run once more what was delivered before', async () => {
    const repeat = async () =>
      send(['/webhook/stripe', '-'], '{"id":"evt_of_stripe","type":"invoice.paid"}')
    const first = JSON.parse((await repeat()).stdout) as EventDetail
    assert.equal(first.state, 'done')
    const again = await run(['webhook', 'send', '/webhook/stripe', '-', '--wait'], {
      home: daemon.home,
      env: variables,
      stdin: '{"id":"evt_of_stripe","type":"invoice.paid"}',
    })
    assert.match(again.stderr, new RegExp(`the same delivery as ${first.id}`))
    assert.match(again.stderr, new RegExp(`hint: .*doorward events retry ${first.id} --again`))
  })

  it('gives each delivery an id of its own, where the sender does', async () => {
    for (const name of ['github', 'standard-webhooks', 'gitlab', 'shopify', 'linear', 'sentry']) {
      const ids = [
        (await event(`/webhook/${name}`, '{}')).deliveryId,
        (await event(`/webhook/${name}`, '{}')).deliveryId,
      ]
      assert.ok(ids[0] && ids[1] && ids[0] !== ids[1], `${name}: ${ids.join()}`)
    }
  })

  it('puts the time of sending into the body for Linear, and changes no other body', async () => {
    const linear = await event(
      '/webhook/linear',
      '{ "webhookTimestamp": 1, "id": 9007199254740993.0 }',
    )
    const { webhookTimestamp } = JSON.parse(linear.result ?? '') as { webhookTimestamp: number }
    assert.ok(Math.abs(Date.now() - webhookTimestamp) < 60_000)
    assert.equal(
      linear.size,
      Buffer.byteLength(
        `{ "webhookTimestamp": 1, "id": 9007199254740993.0 ,"webhookTimestamp":${webhookTimestamp}}`,
      ),
    )
    const other = await event('/webhook/github', '{ "webhookTimestamp": 1.0 }')
    assert.equal(other.size, Buffer.byteLength('{ "webhookTimestamp": 1.0 }'))
  })

  it('sends every sample to a webhook of its sender', async () => {
    const { stdout } = await run(['webhook', 'send', '--sample', '--json'], { home: daemon.home })
    const { samples } = JSON.parse(stdout) as { samples: string[] }
    assert.deepEqual(samples, samples.toSorted())
    for (const sample of samples) {
      const sender = sample.split(':')[0] ?? ''
      const { state, deliveryId } = await event(`/webhook/${sender}`, undefined, { sample })
      const isHandshake = ['github:ping', 'slack:url_verification'].includes(sample)
      assert.equal(state, isHandshake ? 'filtered' : 'done', sample)
      const { deliveryId: ids } = schemeNamed(sender as SchemeName)
      const hasId =
        !/slash_command|block_actions|url_verification|linkedin/.test(sample) &&
        (ids.headers.length > 0 || ids.body !== undefined)
      if (hasId) assert.ok(deliveryId, sample)
    }
  })

  it('makes the home and starts the daemon where there is neither', async () => {
    const home = resolveHome(join(await temporaryFolder(), 'home'))
    const sample = ['--sample', 'github:pull_request.opened', '--wait']
    try {
      const { code, stdout, stderr } = await run(
        ['webhook', 'send', '/webhook/github', ...sample],
        {
          home,
        },
      )
      assert.equal(code, 0, stderr)
      assert.match(stderr, /^started the daemon /m)
      assert.match(stdout, /A pull request was opened in/)
    } finally {
      await stopStarted(home)
    }
  })

  it('names the samples that one was begun with, or the nearest', () => {
    for (const [wanted, hint] of [
      ['github:pull_request', 'did you mean "github:pull_request.opened"?'],
      ['pull_request', 'did you mean "github:pull_request.opened"?'],
      ['charge', 'did you mean "stripe:charge.dispute.created" or "stripe:charge.failed"?'],
      ['github:pusch', 'did you mean "github:push"?'],
      ['gitlab:merge_request', 'doorward webhook send --sample lists them'],
    ] as const) {
      assert.throws(() => readSample(wanted), { code: 'usage', hint })
    }
  })

  it('says what kind of event it is with --event, where there is a header for it', async () => {
    const ping = await event('/webhook/github', '{}', { event: 'ping' })
    assert.equal(ping.state, 'filtered')
    const { code, stderr } = await send(['/webhook/stripe', '-', '--event', 'invoice.paid'], '{}')
    assert.equal(code, 2)
    assert.match(stderr, /stripe, which has no header for it/)
  })

  it('says why a delivery that was taken runs nothing', async () => {
    const { stdout, stderr, code } = await run(['webhook', 'send', '/webhook/picky', '-'], {
      home: daemon.home,
      stdin: '{"action": "opened"}',
    })
    assert.match(stdout, /^evt_\w+ filtered\n$/)
    assert.equal(stderr, 'the filter on action does not match\n')
    assert.equal(code, 0)
  })
})
