import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { EventDetail } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Reply, send } from '../../support/servers/http.ts'

/*
 * What senders' documents ask for besides a signature: answers, ids, names of events, tests of an address. The
 * bodies and signatures without a time are those of the documents or of the senders' libraries.
 */

const secrets = {
  xero: 'xero-key',
  linear: 'lin_wh_x',
  paddle: 'pdl_ntfset_x',
  woocommerce: 'woo-secret',
  cloudevents: 'ce-token',
  asana: 'as',
  hubspot: 'hub',
  'microsoft-graph': 'graph-state',
  meta: '0123456789abcdef0123456789abcdef',
  shopify: 'shp',
  terraform: 'tf',
  pagerduty: 'pd',
  'cal-com': 'cal',
  discourse: 'dis',
  intercom: 'int',
  bitbucket: 'bit',
  docusign: 'second-key',
  mailgun: 'parent-key',
  twilio: 'twilio-token',
  monday: 'client-secret',
  nylas: 'nylas-secret',
} as const
type Name = keyof typeof secrets

/** The kinds that run the agent, where there are several. */
const on: { readonly [Key in Name]?: string } = {
  cloudevents: '[t, second]',
  asana: 'task.changed',
  hubspot: 'contact.creation',
  'microsoft-graph': 'deleted',
  meta: '[messages, page.feed]',
  shopify: 'Order.created',
  terraform: 'assessment:drifted',
  xero: 'CONTACT.UPDATE',
}

const variableOf = (name: string) => `${name.toUpperCase().replace('-', '_')}_SECRET`
const names = Object.keys(secrets) as Name[]

describe('what a sender asks for besides a signature, through a running daemon', () => {
  let daemon: RunningDaemon

  before(async () => {
    const entries = names.map(
      (name) =>
        `  - { path: /webhook/${name}, agent: echo, signature_scheme: ${name}, secret_env: ${name === 'monday' ? '[OTHER_SECRET, MONDAY_SECRET]' : variableOf(name)}, prompt_template: "{{event}}"${on[name] === undefined ? '' : `, on: ${on[name]}`} }\n`,
    )
    daemon = await startDaemon({
      gateway: 'server: { public_url: "https://hooks.example.com", body_limit: 1mb }\n',
      webhooks: `webhooks:\n${entries.join('')}  - { path: /webhook/grafana, agent: echo, secret_env: GRAFANA_SECRET, signature_header: x-grafana-alerting-signature, signature_prefix: '', timestamp_header: X-Time, signed: '{timestamp}:{body}', prompt_template: x }
  - { path: /webhook/lines, agent: echo, secret_env: GRAFANA_SECRET, body_type: ndjson, gzip: true, prompt_template: '{{event[1].b}}' }
  - { path: /webhook/text, agent: echo, secret_env: GRAFANA_SECRET, body_type: text, prompt_template: '{{event}}' }
`,
      env: `${names.map((name) => `${variableOf(name)}=${secrets[name]}\n`).join('')}GRAFANA_SECRET=gr\nOTHER_SECRET=signing-secret\n`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const post = (name: string, body: string, headers: Record<string, string> = {}, query = '') =>
    send(`${daemon.url}/webhook/${name}${query}`, {
      headers: { 'content-type': 'application/json', ...headers },
      body: Buffer.from(body),
    })
  const mac = (name: Name, text: string, encoding: 'hex' | 'base64' = 'hex') =>
    createHmac('sha256', secrets[name]).update(text).digest(encoding)
  /** `accepted`, `filtered`, `duplicate`, `ping`. */
  const statusOf = (reply: Reply): string =>
    /^\S+ (\S+)$/.exec(String(reply.headers['doorward-event'] ?? ''))?.[1] ??
    String(reply.json()['status'])
  const idOf = (reply: Reply): string =>
    /^(\S+) /.exec(String(reply.headers['doorward-event'] ?? ''))?.[1] ?? String(reply.json()['id'])
  const detailOf = (reply: Reply) => daemon.client.get<EventDetail>(`/events/${idOf(reply)}`)

  it('answers the intent to receive of Xero with an empty 200, and a wrong signature with an empty 401', async () => {
    const body =
      '{"events":[],"lastEventSequence":0,"firstEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
    const right = 'YY7SXLbNAUYqMsbrsKP7PpIzfcO9n+XO1ijcIKaqRd8='
    const reply = await post('xero', body, { 'x-xero-signature': right })
    assert.deepEqual([reply.status, reply.text, statusOf(reply)], [200, '', 'ping'])
    const wrong = await post('xero', body, {
      'x-xero-signature': right.replace('YY7', 'YZ7'),
    })
    assert.deepEqual([wrong.status, wrong.text], [401, ''])
  })

  it('answers Linear and Paddle with an empty 200', async () => {
    const at = Date.now()
    const vector = '{"action":"create","type":"Issue","webhookTimestamp":1795790000000,"data":{}}'
    assert.equal(
      mac('linear', vector),
      '7d31e67b0217827b222993aa25f1ce63096a7ca500ba019530f71a1aaa338ce5',
    )
    const linear = vector.replace('1795790000000', String(at))
    const reply = await post('linear', linear, { 'linear-signature': mac('linear', linear) })
    assert.deepEqual([reply.status, reply.text, statusOf(reply)], [200, '', 'accepted'])

    const paddle = '{"event_id":"evt_1","event_type":"transaction.completed"}'
    assert.equal(
      mac('paddle', `1795790000:${paddle}`),
      '6fc6d344276e47e38c093016a37f9e6e6e1d5f712fd309188ab4a2e834d3d976',
    )
    const ts = String(Math.floor(at / 1000))
    const answer = await post('paddle', paddle, {
      'paddle-signature': `ts=${ts};h1=${mac('paddle', `${ts}:${paddle}`)}`,
    })
    assert.deepEqual([answer.status, answer.text, statusOf(answer)], [200, '', 'accepted'])
  })

  it('takes two orders of WooCommerce in one second, and each only once', async () => {
    const id = { 'x-wc-webhook-delivery-id': 'd41d8cd98f00b204e9800998ecf8427e' }
    const first = {
      ...id,
      'x-wc-webhook-signature': 'ueUaS+FSLDeq3KPWOJMOOfNu3pvS2EPB2OSU538lwN0=',
    }
    const second = {
      ...id,
      'x-wc-webhook-signature': 'dVKZ0U08UHHZf3RSlEsVwOFQArfkSUsZSN9guI5B37I=',
    }
    assert.equal(statusOf(await post('woocommerce', '{"id":1}', first)), 'accepted')
    assert.equal(statusOf(await post('woocommerce', '{"id":2}', second)), 'accepted')
    assert.equal(statusOf(await post('woocommerce', '{"id":2}', second)), 'duplicate')
  })

  it('makes a secret for Lemon Squeezy that it takes', async () => {
    const { stdout, code } = await run(['webhook', 'add', 'lemon-squeezy', '--show-secret'], {
      home: daemon.home,
    })
    assert.equal(code, 0)
    const [secret = ''] = /\b[0-9a-f]{20,}\b/.exec(stdout) ?? []
    assert.match(secret, /^[0-9a-f]{32}$/)
  })

  it('knows an event of CloudEvents by its source and its id', async () => {
    const token = { authorization: 'Bearer ce-token' }
    const inBody = (body: object, type = 'application/cloudevents+json') =>
      post('cloudevents', JSON.stringify(body), { ...token, 'content-type': type })
    const named = { specversion: '1.0', type: 't', id: '7' }
    const first = await inBody({ ...named, source: '/a' })
    assert.equal(statusOf(first), 'accepted')
    assert.equal((await detailOf(first)).deliveryId, '/a 7')
    assert.equal(statusOf(await inBody({ ...named, source: '/a' })), 'duplicate')
    assert.equal(statusOf(await inBody({ ...named, source: '/b' })), 'accepted')
    const inHeaders = (source: string) =>
      post('cloudevents', '{"data":1}', {
        ...token,
        'ce-id': '1',
        'ce-type': 't',
        'ce-specversion': '1.0',
        'ce-source': source,
      })
    assert.equal(statusOf(await inHeaders('/a')), 'accepted')
    assert.equal(statusOf(await inHeaders('/b')), 'accepted')
    assert.equal(statusOf(await inHeaders('/b')), 'duplicate')
    // An id that is no text is none.
    const strange = { ...named, source: '/a', id: { $ne: 1 } }
    assert.equal((await detailOf(await inBody(strange))).deliveryId, undefined)
    const batch = [
      { ...named, type: 'first', source: '/a' },
      { ...named, type: 'second', source: '/a' },
    ]
    const batchType = 'application/cloudevents-batch+json'
    assert.equal(statusOf(await inBody(batch, batchType)), 'accepted')
    assert.equal(statusOf(await inBody(batch.slice(0, 1), batchType)), 'filtered')
  })

  it('runs a batch of Asana of which any event is one of on, with the whole batch', async () => {
    const body =
      '{"events":[{"action":"added","resource":{"resource_type":"story"}},{"action":"changed","resource":{"resource_type":"task"}}]}'
    const reply = await post('asana', body, {
      'x-hook-signature': '78120c1142a044144c60e0f2c13b3857cf265c9e6375fed5a21d215baff3b118',
    })
    assert.equal(statusOf(reply), 'accepted')
    const other = body.replaceAll('"changed"', '"removed"')
    const filtered = await post('asana', other, { 'x-hook-signature': mac('asana', other) })
    assert.equal(statusOf(filtered), 'filtered')
    const heartbeat = await post('asana', '{"events":[]}', {
      'x-hook-signature': '45c38ad73363b187504917d4b688857a13c4176251a2eaa62ab433bc9f71a8e9',
    })
    assert.deepEqual([heartbeat.status, heartbeat.text], [200, ''])
    assert.equal(statusOf(heartbeat), 'ping')
  })

  it('runs a batch of HubSpot, Xero and Microsoft Graph by any of its events', async () => {
    const hubspot =
      '[{"subscriptionType":"deal.creation","eventId":1},{"subscriptionType":"contact.creation","eventId":2}]'
    const signed = (time: string) =>
      mac('hubspot', `POSThttps://hooks.example.com/webhook/hubspot${hubspot}${time}`, 'base64')
    assert.equal(signed('1795790000000'), 'vSHkbj6TntSiteMqP/5RSZ7+v2/FH7jKKLNVzenxZo0=')
    const time = String(Date.now())
    const reply = await post('hubspot', hubspot, {
      'x-hubspot-request-timestamp': time,
      'x-hubspot-signature-v3': signed(time),
    })
    assert.equal(statusOf(reply), 'accepted')
    const { subject } = await detailOf(reply)
    assert.equal(subject?.title, 'deal.creation, contact.creation')

    const xero =
      '{"events":[{"eventCategory":"INVOICE","eventType":"CREATE"},{"eventCategory":"CONTACT","eventType":"UPDATE"}]}'
    const ofXero = await post('xero', xero, { 'x-xero-signature': mac('xero', xero, 'base64') })
    assert.equal(statusOf(ofXero), 'accepted')

    const clientState = secrets['microsoft-graph']
    const graph = (...types: string[]) =>
      post(
        'microsoft-graph',
        JSON.stringify({ value: types.map((changeType) => ({ changeType, clientState })) }),
      )
    assert.equal(statusOf(await graph('created', 'deleted')), 'accepted')
    assert.equal(statusOf(await graph('created', 'updated')), 'filtered')
  })

  it('finds the one event of on among ten thousand', async () => {
    const events = Array.from({ length: 10_000 }, () => ({
      action: 'added',
      resource: { resource_type: 'story' },
    }))
    const last = { action: 'changed', resource: { resource_type: 'task' } }
    const body = JSON.stringify({ events: [...events, last] })
    const reply = await post('asana', body, { 'x-hook-signature': mac('asana', body) })
    assert.equal(statusOf(reply), 'accepted')
  })

  it('names an event of Meta by its object and the field that changed', async () => {
    const meta = async (body: object) => {
      const text = JSON.stringify(body)
      return statusOf(
        await post('meta', text, { 'x-hub-signature-256': `sha256=${mac('meta', text)}` }),
      )
    }
    const changes = (object: string, ...fields: string[]) => ({
      object,
      entry: [{ id: '1' }, { changes: fields.map((field) => ({ field })) }],
    })
    assert.equal(await meta(changes('whatsapp_business_account', 'flows', 'messages')), 'accepted')
    assert.equal(await meta(changes('page', 'feed')), 'accepted')
    assert.equal(await meta(changes('page', 'ratings')), 'filtered')
    assert.equal(await meta({ object: 'page', entry: [{ messaging: [] }] }), 'filtered')
  })

  it("names an event of Shopify's Events API and of the second version of HCP Terraform", async () => {
    const shopify = await post('shopify', '{"id":1}', {
      'shopify-hmac-sha256': 'hZClskFL3VTQ8gvXlmjDVk/YlP7FCyFoifsa/2r9Pzw=',
      'shopify-topic': 'Order',
      'shopify-action': 'created',
      'shopify-webhook-id': 'one',
    })
    assert.equal(statusOf(shopify), 'accepted')
    const terraform =
      '{"payload_version":"2","trigger_scope":"assessment","trigger":"assessment:drifted","message":"Drift Detected","details":{}}'
    const reply = await post('terraform', terraform, {
      'x-tfe-notification-signature':
        '8eed88cbecfd7566c08e90403f8dae50b7af410cbdaa2e28c5bb86e64a6c22f4f35cee917d29b913cf92521ba5d80b68e933b4eddcfc8c87dd0620725888d003',
    })
    assert.equal(statusOf(reply), 'accepted')
  })

  it('runs nothing for the test buttons of PagerDuty, Cal.com, Discourse, Intercom and Bitbucket', async () => {
    const pings: [Name, string, Record<string, string>][] = [
      [
        'pagerduty',
        '{"event":{"id":"01","event_type":"pagey.ping","data":{"message":"Hello from your friend Pagey!","type":"ping"}}}',
        {
          'x-pagerduty-signature':
            'v1=34e2621dc35834efc6753616e6808e2b9936beb1851e0277d9eac2ea60bc3359',
        },
      ],
      [
        'cal-com',
        '{"triggerEvent":"PING","createdAt":"2026-01-01T00:00:00Z","payload":{"type":"Test"}}',
        {
          'x-cal-signature-256': '18d441666735fbdb947b89aacadf5ba4ea69098b260684d32f0301d8199a643e',
        },
      ],
      [
        'discourse',
        '{"ping":"OK"}',
        {
          'x-discourse-event': 'ping',
          'x-discourse-event-signature':
            'sha256=afb3d541fcb10982b74e340a953be35b26b22a1a535b3578bb92e26c82203737',
        },
      ],
      [
        'intercom',
        '{"type":"notification_event","id":"notif_1","topic":"ping","data":{"item":{"type":"ping"}}}',
        { 'x-hub-signature': 'sha1=9336ed0fbfa07db427a4dc11a949681c928e20ba' },
      ],
    ]
    for (const [name, body, headers] of pings) {
      const reply = await post(name, body, headers)
      assert.equal(statusOf(reply), 'ping', name)
      assert.equal((await detailOf(reply)).state, 'filtered')
      assert.equal((await post(name, `${body} `, headers)).status, 401, name)
    }
    const diagnostics = { 'x-event-key': 'diagnostics:ping' }
    const bitbucket = await post('bitbucket', '{"test":true}', diagnostics)
    assert.deepEqual([bitbucket.status, bitbucket.text], [200, ''])
    assert.equal(
      (await post('bitbucket', '{"test":true}', { 'x-event-key': 'repo:refs_changed' })).status,
      401,
    )
    const signed = { ...diagnostics, 'x-hub-signature': `sha256=${'0'.repeat(64)}` }
    assert.equal((await post('bitbucket', '{"test":true}', signed)).status, 401)
  })

  it('takes what the second key of DocuSign, and the key of a parent account of Mailgun, has signed', async () => {
    const docusign = await post('docusign', '{"event":"envelope-sent"}', {
      'x-docusign-signature-1': createHmac('sha256', 'first-key').update('x').digest('base64'),
      'x-docusign-signature-2': mac('docusign', '{"event":"envelope-sent"}', 'base64'),
    })
    assert.equal(statusOf(docusign), 'accepted')
    const time = String(Math.floor(Date.now() / 1000))
    const signature = (key: string, token: string) => ({
      timestamp: time,
      token,
      signature: createHmac('sha256', key)
        .update(time + token)
        .digest('hex'),
    })
    const mail = (key: string) =>
      JSON.stringify({
        signature: {
          ...signature('key-of-the-subaccount', 'a'.repeat(50)),
          'parent-signature': signature(key, 'b'.repeat(50)),
        },
        'event-data': { event: 'opened' },
      })
    assert.equal(statusOf(await post('mailgun', mail('parent-key'))), 'accepted')
    assert.equal(statusOf(await post('mailgun', mail('parent-key'))), 'duplicate')
    assert.equal((await post('mailgun', mail('another'))).status, 401)
  })

  it('takes what Twilio signs with the port in the address', async () => {
    const fields = { Body: 'hi', From: '+1' }
    const sign = (url: string) =>
      createHmac('sha1', secrets.twilio).update(`${url}BodyhiFrom+1`).digest('base64')
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    for (const [port, expected] of [
      ['', 200],
      [':443', 200],
      [':444', 401],
    ] as const) {
      const signature = sign(`https://hooks.example.com${port}/webhook/twilio`)
      const reply = await post('twilio', new URLSearchParams(fields).toString(), {
        ...form,
        'x-twilio-signature': signature,
      })
      assert.equal(reply.status, expected, port)
    }
  })

  it("takes what monday.com signs with the app's client secret, where both are named", async () => {
    const body = '{"type":"install","data":{"app_id":1}}'
    const head = [{ alg: 'HS256', typ: 'JWT' }, { exp: Math.floor(Date.now() / 1000) + 60 }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const jwt = (key: string) =>
      `${head}.${createHmac('sha256', key).update(head).digest('base64url')}`
    for (const [key, expected] of [
      ['client-secret', 202],
      ['signing-secret', 202],
      ['another-secret', 401],
    ] as const)
      assert.equal((await post('monday', body, { authorization: jwt(key) })).status, expected, key)
  })

  it('reads what Nylas has compressed, and unpacks no more than a body may have', async () => {
    const packed = (text: string) => gzipSync(Buffer.from(text))
    const nylas = async (bytes: Buffer) =>
      send(`${daemon.url}/webhook/nylas`, {
        headers: {
          'content-type': 'application/json',
          'content-encoding': 'gzip',
          'x-nylas-signature': createHmac('sha256', secrets.nylas).update(bytes).digest('hex'),
        },
        body: bytes,
      })
    const reply = await nylas(packed('{"id":"n1","type":"message.created"}'))
    assert.deepEqual([reply.status, statusOf(reply)], [200, 'accepted'])
    assert.match((await untilFinished(daemon, idOf(reply))).result ?? '', /message\.created/)
    const bomb = await nylas(packed(`{"a":"${'x'.repeat(50_000_000)}"}`))
    assert.deepEqual([bomb.status, bomb.json()['code']], [413, 'body-too-large'])
    assert.equal((await nylas(Buffer.from('{"id":"n2"}'))).status, 400)
    const forged = packed('{"id":"n3"}')
    const bad = await send(`${daemon.url}/webhook/nylas`, {
      headers: { 'content-encoding': 'gzip', 'x-nylas-signature': '0'.repeat(64) },
      body: forged,
    })
    assert.equal(bad.status, 401)
  })

  it('reads the JSON of each line, or text, of a sender that is described so', async () => {
    const signed = (body: string) => ({
      'x-hub-signature-256': `sha256=${createHmac('sha256', 'gr').update(body).digest('hex')}`,
    })
    const lines = '{"a":1}\n\n{"b":"two"}\r\n'
    const reply = await post('lines', lines, {
      ...signed(lines),
      'content-type': 'application/x-ndjson',
    })
    assert.equal((await untilFinished(daemon, idOf(reply))).result, 'two')
    for (const bad of ['{"a":1} {"b":2}\n', '1],[2\n', '1\n'.repeat(10_001)])
      assert.equal((await post('lines', bad, signed(bad))).status, 400)
    const text = 'disk {{event}} is full'
    const told = await post('text', text, { ...signed(text), 'content-type': 'text/plain' })
    assert.match(
      (await untilFinished(daemon, idOf(told))).result ?? '',
      /disk \{\{event\}\} is full/,
    )
    // The content type is not signed: another one changes nothing.
    const form = 'payload=%7B%7D'
    const same = await post('text', form, {
      ...signed(form),
      'content-type': 'application/x-www-form-urlencoded',
    })
    assert.match((await untilFinished(daemon, idOf(same))).result ?? '', /payload=%7B%7D/)
  })

  it('takes Grafana with a header for the time, and config check finds nothing wrong', async () => {
    const sign = (time: string) =>
      createHmac('sha256', 'gr').update(`${time}:{"status":"firing"}`).digest('hex')
    assert.equal(
      sign('1795790000'),
      'c29a27efc968b485122be89e627b2a058703b1acba125df8470223f53e2eceb9',
    )
    const time = String(Math.floor(Date.now() / 1000))
    const headers = { 'x-time': time, 'x-grafana-alerting-signature': sign(time) }
    assert.equal(statusOf(await post('grafana', '{"status":"firing"}', headers)), 'accepted')
    const { stdout, stderr } = await run(['config', 'check'], { home: daemon.home })
    assert.doesNotMatch(stdout + stderr, /no delivery is accepted/)
  })
})
