import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { EventRecord } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'

const secret = 'a secret of the test'
/** GitHub sends no larger payload. */
const mostBytes = 25 * 1024 * 1024

const list = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(',')

describe('a signed body of many megabytes', () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK=${secret}\n`,
      webhooks: `webhooks:
  - { path: /github, signature_scheme: github, agent: echo, secret_env: HOOK, prompt_template: "{{event.ref}}" }
  - { path: /shopify, signature_scheme: shopify, agent: echo, secret_env: HOOK, prompt_template: "{{event.id}}" }
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const asGithub = async (body: string) =>
    send(`${daemon.url}/github`, {
      headers: githubHeaders(body, secret, { 'x-github-event': 'push' }),
      body,
    })
  const resultOf = async (id: unknown) => (await untilFinished(daemon, String(id))).result

  const attacks: readonly (readonly [name: string, body: string, excess: string])[] = [
    [
      'a million members',
      `{${list(1_000_000, (index) => `"member ${index}":1`)}}`,
      '250,000 members',
    ],
    ['many members in many objects', list(400_000, () => '{"a":1,"b":2}'), '250,000 members'],
    [
      'a million integers beyond 2^53',
      list(1_000_000, (index) => `${18_446_744_000_000 + index}0000000`),
      '2,000,000 digits of long numbers',
    ],
    ['twelve million items', list(12_000_000, () => '1'), '1,000,000 values'],
    ['one number of 25 million digits', '1'.repeat(mostBytes - 2), '2,000,000 digits'],
  ]
  for (const [name, text, excess] of attacks)
    it(`is refused before it is parsed, with ${name}`, async function () {
      this.timeout(20_000)
      const reply = await asGithub(text.startsWith('{"m') ? text : `[${text}]`)
      assert.deepEqual([reply.status, reply.json()['code']], [400, 'payload-not-json'])
      const { events } = await daemon.client.get<{ events: EventRecord[] }>(
        '/events?state=rejected&limit=1',
      )
      assert.match(events[0]?.detail ?? '', new RegExp(`^the body has more than ${excess}`))
    })

  it('is taken where it is the largest push that GitHub sends', async function () {
    this.timeout(20_000)
    const person = { name: 'A Person', email: 'a.person@example.com', username: 'a-person' }
    const files = Array.from(
      { length: 200 },
      (_, file) => `packages/some-package/src/part-${file}/index.ts`,
    )
    const commits = Array.from({ length: 2048 }, (_, index) => ({
      id: String(index).padStart(40, '0'),
      tree_id: String(index).padStart(40, '1'),
      distinct: true,
      message: 'fix: something\\n\\nin several places',
      timestamp: '2026-11-27T12:00:00+01:00',
      url: `https://github.com/acme/shop/commit/${index}`,
      author: person,
      committer: person,
      added: files,
      removed: [],
      modified: files.slice(0, 60),
    }))
    const body = JSON.stringify({ ref: 'refs/heads/main', forced: false, commits })
    assert.ok(body.length > mostBytes * 0.9 && body.length <= mostBytes, String(body.length))
    const reply = await asGithub(body)
    assert.equal(reply.status, 202, reply.text)
    assert.equal(await resultOf(reply.json()['id']), 'refs/heads/main')
  })

  it('is taken where it is a product of Shopify with the most variants', async () => {
    const variants = Array.from({ length: 2048 }, (_, index) => ({
      id: 44_000_000_000_000 + index,
      admin_graphql_api_id: `gid://shopify/ProductVariant/${44_000_000_000_000 + index}`,
      product_id: 7_000_000_000_000,
      title: `Size ${index} / Colour`,
      price: '19.00',
      sku: `SKU-${index}`,
      position: index,
      inventory_policy: 'deny',
      taxable: true,
      barcode: null,
      inventory_item_id: 46_000_000_000_000 + index,
      inventory_quantity: 12,
      grams: 100,
      option1: `Size ${index}`,
      option2: 'Colour',
      option3: null,
      image_id: null,
      created_at: '2026-11-27T12:00:00-05:00',
      updated_at: '2026-11-27T12:00:00-05:00',
    }))
    const body = JSON.stringify({ id: 7_000_000_000_000, title: 'A product', variants })
    const signature = createHmac('sha256', secret).update(body).digest('base64')
    const reply = await send(`${daemon.url}/shopify`, {
      headers: { 'content-type': 'application/json', 'x-shopify-hmac-sha256': signature },
      body,
    })
    assert.equal(reply.status, 202, reply.text)
    assert.equal(await resultOf(reply.json()['id']), '7000000000000')
  })
})
