import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { packageFolder } from '../../../shared/version.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { sendJson, startScriptedProvider } from '../../support/providers/scripted-provider.ts'
import { send } from '../../support/servers/http.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { temporaryHome } from '../../support/temporary.ts'

/*
 * Compares the dashboard for Grafana with the metrics of a daemon. Each expression was also tried by hand in
 * Prometheus 2.42; no Grafana has loaded the file. The format is checked by Grafana's source
 * (grafana/grafana: kinds/dashboard, and packages/grafana-data/src/valueFormats).
 */

type Target = { readonly expr: string; readonly legendFormat: string }
type Dashboard = { readonly panels: readonly { readonly targets: readonly Target[] }[] }

const file = new URL('assets/grafana/doorward.json', packageFolder)

describe('the dashboard', () => {
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as Dashboard
  const targets = panels.flatMap((panel) => panel.targets)
  let server: AuthorizationServer
  let daemon: RunningDaemon
  let model: Awaited<ReturnType<typeof startScriptedProvider>>
  /** The names of the labels of each metric. */
  let exposed: ReadonlyMap<string, ReadonlySet<string>>

  before(async () => {
    server = await startAuthorizationServer()
    model = await startScriptedProvider(() => ({
      '/ask': (response) =>
        sendJson(response, 200, { usage: { inputTokens: 300, outputTokens: 100, costUsd: 0.3 } }),
    }))
    const home = await temporaryHome({
      agents: `agents: { asks: { kind: http, url: "${model.origin}/ask", usage_path: usage } }`,
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      webhooks:
        "webhooks: [{ path: /a, agent: asks, prompt_template: x, deliver_to: 'file:answers.md' }]\n",
    })
    await storeLogin(home, 'ada', await server.mint())
    daemon = await startDaemon({ home })
    const reply = await send(`${daemon.url}/a`, {
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    await untilFinished(daemon, String(reply.json()['id']))
    await daemon.client.get('/oauth/tokens/ada/access')
    const headers = { authorization: `Bearer ${daemon.apiToken}` }
    const { text } = await send(`${daemon.url}/metrics`, { method: 'GET', headers })
    exposed = getLabels(text)
  })
  after(async () => {
    await daemon?.stop()
    await server?.close()
    model?.close()
  })

  it('uses existing metrics and labels', () => {
    assert.ok(targets.length > 15)
    for (const { expr, legendFormat } of targets) {
      const names = [...expr.matchAll(/\b([a-z_]+)\{/g)].map(([, name = '']) => name)
      assert.equal(names.length, 1, expr)
      const labels = exposed.get(names[0] ?? '')
      assert.ok(labels, `${names[0]} is not exposed`)
      const matched = [...expr.matchAll(/([a-z_]+)=~"/g)].map(([, label = '']) => label)
      const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ')
      // Prometheus adds `instance`.
      for (const label of [...matched, ...(grouped ?? [])])
        assert.ok(label === 'instance' || labels.has(label), `${label}: ${expr}`)
      for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        assert.ok(
          grouped ? grouped.includes(label) : label === 'instance' || labels.has(label),
          `${label}: ${legendFormat}`,
        )
    }
  })

  it('selects one daemon, as other programs expose the same process metrics', () => {
    for (const { expr } of targets) assert.match(expr, /\w\{instance=~"\$instance"\}/)
  })
})

/** The names of the labels of each metric. */
const getLabels = (text: string): Map<string, Set<string>> => {
  const found = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-z_]+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (name === undefined) continue
    const names = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label = '']) => label)
    found.set(name, new Set([...(found.get(name) ?? []), ...names]))
  }
  return found
}
