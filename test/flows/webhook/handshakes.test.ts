import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'dotenv'
import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

const entry = (name: string, more = '') =>
  `  - { path: /webhook/${name}, agent: echo, signature_scheme: ${name}, secret_env: ${variableOf(name)}, prompt_template: "{{event}}"${more} }\n`
const variableOf = (name: string) => `${name.toUpperCase().replace('-', '_')}_SECRET`

const known = {
  zoom: 'zoom-secret-token',
  meta: '0123456789abcdef0123456789abcdef',
  dropbox: 'dropbox-app-secret',
  trello: '0123456789abcdef'.repeat(4),
  cloudevents: 'cloudevents-token',
  twitch: 'twitch-secret',
  terraform: 'terraform-token',
  woocommerce: 'woocommerce-secret',
  'google-calendar': 'calendar-token',
} as const
const secretOf = (name: keyof typeof known) => known[name]

describe('the handshakes of senders, through a running daemon', () => {
  let daemon: RunningDaemon

  before(async () => {
    const names = Object.keys(known)
    daemon = await startDaemon({
      gateway: 'server: { public_url: "https://hooks.example" }\n',
      webhooks: `webhooks:\n${names
        .map((name) => entry(name, name === 'meta' ? ', verify_token_env: META_TOKEN' : ''))
        .join(
          '',
        )}${entry('notion')}${entry('asana', ', confirm: true')}  - { path: /webhook/asked, agent: echo, signature_scheme: asana, secret_env: ASKED_SECRET, prompt_template: x }
  - { path: /webhook/x, agent: echo, secret_env: X_SECRET, prompt_template: "{{event}}", event_field: type, on: order.paid, answer: empty, challenge: { query: crc_token, hmac: sha256, json: response_token } }
  - { path: /webhook/told, agent: echo, signature_scheme: token, secret_env: X_SECRET, prompt_template: "{{event}}", event_header: X-Event, on: order.paid, answer: { status: 200, text: '[accepted]' }, challenge: { query: challenge } }
  - { path: /webhook/named, agent: echo, secret_env: X_SECRET, prompt_template: x, event_header: X-Event, dedupe: 'off' }\n`,
      env: `${Object.entries(known)
        .map(([name, secret]) => `${variableOf(name)}=${secret}\n`)
        .join('')}META_TOKEN=verify-me\nX_SECRET=x-secret\n`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const request = async (
    name: string,
    more: { readonly method?: string; readonly query?: string; readonly body?: string } & {
      readonly headers?: Record<string, string>
    },
  ) => {
    const { method = 'POST', query = '', body, headers = {} } = more
    const type = { 'content-type': 'application/json' }
    return send(`${daemon.url}/webhook/${name}${query}`, {
      method,
      headers: body === undefined ? headers : { ...type, ...headers },
      ...(body !== undefined && { body }),
    })
  }
  const mac = (secret: string, text: string, algorithm = 'sha256') =>
    createHmac(algorithm, secret).update(text)
  const lastEvent = async (name: string): Promise<EventRecord> => {
    const path = `/events?webhook=${encodeURIComponent(`/webhook/${name}`)}`
    const [event] = (await daemon.client.get<{ events: EventRecord[] }>(path)).events
    assert.ok(event)
    return event
  }
  const logs = async (): Promise<string> => {
    const files = await readdir(daemon.home.logs)
    const texts = files.map(async (file) => readFile(join(daemon.home.logs, file), 'utf8'))
    return (await Promise.all(texts)).join('')
  }

  it('of Meta are answered with the verify token, and nothing shows it', async () => {
    const query = (token: string) =>
      `?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`
    const reply = await request('meta', { method: 'GET', query: query('verify-me') })
    assert.deepEqual([reply.status, reply.text], [200, '1158201444'])
    const refused = await request('meta', { method: 'GET', query: query('canary-token') })
    assert.equal(refused.status, 401)
    assert.doesNotMatch(refused.text, /1158201444/)
    const event = await lastEvent('meta')
    assert.equal(event.state, 'rejected')
    assert.doesNotMatch(JSON.stringify(event) + (await logs()), /canary-token|verify-me/)
    assert.equal((await request('meta', { method: 'HEAD' })).status, 405)
  })

  it('of Zoom and Twitch are answered with a valid signature only', async () => {
    const seconds = String(Math.floor(Date.now() / 1000))
    const zoom = '{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}'
    const zoomHeaders = {
      'x-zm-request-timestamp': seconds,
      'x-zm-signature': `v0=${mac(secretOf('zoom'), `v0:${seconds}:${zoom}`).digest('hex')}`,
    }
    const answer = await request('zoom', { body: zoom, headers: zoomHeaders })
    assert.equal(answer.status, 200)
    assert.equal(answer.json()['encryptedToken'], mac(secretOf('zoom'), 'abc').digest('hex'))
    assert.equal((await request('zoom', { body: zoom })).status, 401)

    const twitch = '{"challenge":"pogchamp","subscription":{}}'
    const time = new Date().toISOString()
    const signature = mac(secretOf('twitch'), `id-1${time}${twitch}`).digest('hex')
    const headers = {
      'twitch-eventsub-message-id': 'id-1',
      'twitch-eventsub-message-timestamp': time,
      'twitch-eventsub-message-signature': `sha256=${signature}`,
      'twitch-eventsub-message-type': 'webhook_callback_verification',
    }
    const reply = await request('twitch', { body: twitch, headers })
    assert.deepEqual([reply.status, reply.text], [200, 'pogchamp'])
    const forged = { ...headers, 'twitch-eventsub-message-signature': `sha256=${'0'.repeat(64)}` }
    assert.equal((await request('twitch', { body: twitch, headers: forged })).status, 401)
  })

  it('of Notion show their token only to the owner who looks', async () => {
    const token = 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl'
    const reply = await request('notion', { body: JSON.stringify({ verification_token: token }) })
    assert.deepEqual([reply.status, reply.text], [200, ''])
    const listed = await lastEvent('notion')
    assert.match(listed.detail ?? '', /verification token/)
    assert.doesNotMatch(JSON.stringify(listed) + (await logs()), /secret_tMrl/)
    const detail = await daemon.client.get<EventDetail>(`/events/${listed.id}`)
    assert.equal(detail.result, token)
    const shown = await run(['events', 'show', listed.id], { home: daemon.home })
    assert.match(shown.stdout, new RegExp(`^token\\n *${token}$`, 'm'))
    assert.equal((await request('notion', { body: '{"type":"page.created"}' })).status, 503)
  })

  it('of Asana give the secret, once, with the consent of the owner', async () => {
    const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
    const headers = { 'x-hook-secret': secret }
    const asked = await request('asked', { body: '{}', headers })
    assert.equal(asked.status, 401)
    assert.equal(asked.headers['x-hook-secret'], undefined)
    assert.match((await lastEvent('asked')).detail ?? '', /webhook add asana asks/)

    const reply = await request('asana', { body: '{}', headers })
    assert.deepEqual([reply.status, reply.headers['x-hook-secret']], [200, secret])
    const values = parse(await readFile(daemon.home.env, 'utf8'))
    assert.equal(values['ASANA_SECRET'], secret)
    assert.equal(values['ZOOM_SECRET'], secretOf('zoom'))
    // Used from the first delivery on.
    const body = '{"events":[{"action":"changed","resource":{"resource_type":"task"}}]}'
    const signed = { 'x-hook-signature': mac(secret, body).digest('hex') }
    assert.equal((await request('asana', { body, headers: signed })).status, 200)
    assert.equal((await request('asana', { body })).status, 401)

    const again = await request('asana', {
      body: '{}',
      headers: { 'x-hook-secret': 'f'.repeat(64) },
    })
    assert.equal(again.status, 401)
    assert.equal(parse(await readFile(daemon.home.env, 'utf8'))['ASANA_SECRET'], secret)
    assert.doesNotMatch(await logs(), new RegExp(secret))
  })

  it('that the owner describes are answered, and so is a delivery', async () => {
    const challenge = await request('x', { method: 'GET', query: '?crc_token=abc' })
    assert.equal(challenge.status, 200)
    assert.equal(challenge.headers['content-type'], 'application/json')
    assert.deepEqual(challenge.json(), { response_token: mac('x-secret', 'abc').digest('hex') })
    const markup = await request('x', { method: 'GET', query: '?crc_token=%3Cscript%3E' })
    assert.equal(markup.status, 401)
    const echoed = await request('told', { method: 'GET', query: '?challenge=%3Cscript%3E' })
    assert.deepEqual([echoed.status, echoed.text], [200, '<script>'])
    assert.equal(echoed.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(echoed.headers['x-content-type-options'], 'nosniff')
    const head = await request('told', { method: 'HEAD', query: '?challenge=abc' })
    assert.deepEqual([head.status, head.text], [200, ''])
    const none = await request('told', { method: 'GET' })
    assert.deepEqual([none.status, none.headers['allow']], [405, 'POST, GET, HEAD'])
    const long = await request('told', { method: 'GET', query: `?challenge=${'a'.repeat(10_000)}` })
    assert.equal(long.status, 405)

    const signed = (body: string) => ({
      'x-hub-signature-256': `sha256=${mac('x-secret', body).digest('hex')}`,
    })
    for (const [type, state] of [
      ['order.paid', 'accepted'],
      ['order.made', 'filtered'],
    ]) {
      const body = JSON.stringify({ type })
      const reply = await request('x', { body, headers: signed(body) })
      assert.deepEqual([reply.status, reply.text], [200, ''])
      assert.match(String(reply.headers['doorward-event']), new RegExp(` ${state}$`))
      const headers = { authorization: 'Bearer x-secret', 'x-event': type ?? '' }
      const told = await request('told', { body: '{}', headers })
      assert.deepEqual([told.status, told.text], [200, '[accepted]'])
      assert.match(String(told.headers['doorward-event']), new RegExp(` ${state}$`))
    }
  })

  it('name no delivery again as an event of another kind', async () => {
    const body = '{"n":1}'
    const headers = { 'x-hub-signature-256': `sha256=${mac('x-secret', body).digest('hex')}` }
    const send = async (event: string) =>
      (await request('named', { body, headers: { ...headers, 'x-event': event } })).status
    assert.deepEqual([await send('order.paid'), await send('order.made')], [202, 202])
    assert.equal(await send('user.deleted'), 400)
  })
})
