import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { explanationSchema } from '../../../shared/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

describe('what a template reads of a delivery', () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      webhooks: `
webhooks:
  - path: /scope
    agent: echo
    prompt_template: "{{event.n}}|{{headers.X-Kind}}|{{headers.absent}}|{{webhook.path}}|{{delivery.id}}|{{delivery.received_at}}"
    deliver_to: "file:out/{{headers.x-kind}}-{{delivery.id}}.md"
`,
    })
  })
  after(async () => daemon.stop())

  it('is the payload, the headers it names, the webhook and the delivery', async () => {
    const headers = { 'x-kind': 'ship', 'idempotency-key': 'key-1' }
    const reply = await send(`${daemon.url}/scope`, {
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"n":7}',
    })
    const { receivedAt } = await untilFinished(daemon, String(reply.json()['id']))
    const answer = await readFile(join(daemon.home.root, 'out', 'ship-key-1.md'), 'utf8')
    assert.ok(answer.includes(`7|ship||/scope|key-1|${receivedAt}`), answer)
  })

  it('is shown by an explanation', async () => {
    const { prompt, substituted } = explanationSchema.parse(
      await daemon.client.post('/webhooks/explain', {
        path: '/scope',
        headers: { 'X-Kind': 'ship', 'Idempotency-Key': 'key-2' },
        payload: '{"n":7}',
      }),
    )
    assert.match(prompt, /^7\|ship\|\|\/scope\|key-2\|20/)
    assert.deepEqual(
      substituted.map(({ path }) => path),
      [
        'event.n',
        'headers.x-kind',
        'headers.absent',
        'webhook.path',
        'delivery.id',
        'delivery.received_at',
      ],
    )
  })
})
