import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { packageFolder } from '../../../shared/version.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { temporaryHome } from '../../support/temporary.ts'

/*
 * Compares the dashboard for Grafana with the metrics of a daemon. Each expression was also tried by hand in
 * Prometheus 2.42; no Grafana has loaded the file. The format is checked by Grafana's source
 * (grafana/grafana: kinds/dashboard, and packages/grafana-data/src/valueFormats).
 */

type Target = { readonly refId: string; readonly expr: string; readonly legendFormat: string }
type Source = { readonly type: string; readonly uid: string }
type Panel = {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly datasource: Source
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly fieldConfig: {
    readonly defaults: {
      readonly unit: string
      readonly thresholds?: { readonly steps: readonly { readonly value: number | null }[] }
    }
  }
  readonly targets: readonly Target[]
}
type Variable = {
  readonly name: string
  readonly type: string
  readonly query: string | { readonly query: string }
  readonly datasource?: Source
}
type Dashboard = {
  readonly schemaVersion: number
  readonly templating: { readonly list: readonly Variable[] }
  readonly panels: readonly Panel[]
}

const file = new URL('assets/grafana/doorward.json', packageFolder)

/** A part of Grafana's list. */
const units = new Set(['short', 'none', 'bytes', 'reqps', 'ops', 's', 'percentunit'])

/** Of Prometheus. */
const functions = new Set(['sum', 'rate', 'increase', 'histogram_quantile', 'time'])

describe('the dashboard', () => {
  const { schemaVersion, templating, panels } = JSON.parse(readFileSync(file, 'utf8')) as Dashboard
  const targets = panels.flatMap((panel) => panel.targets)
  let server: AuthorizationServer
  let daemon: RunningDaemon
  /** The names of the labels of each metric. */
  let exposed: ReadonlyMap<string, ReadonlySet<string>>

  before(async () => {
    server = await startAuthorizationServer()
    const home = await temporaryHome({
      gateway: `oauth: { callback_port: 0 }\nproviders: { ada: { issuer: '${server.issuer}', client_id: public } }\n`,
      webhooks:
        "webhooks: [{ path: /a, agent: echo, prompt_template: x, deliver_to: 'file:answers.md' }]\n",
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

  it('has complete expressions with functions of Prometheus', () => {
    for (const { expr } of targets) {
      for (const [open, close] of ['()', '{}', '[]'] as const)
        assert.equal(expr.split(open ?? '').length, expr.split(close ?? '').length, expr)
      const rest = expr
        .replace(/[a-z_]+\{[^}]*\}/g, '')
        .replace(/\[\$__rate_interval\]/g, '')
        .replace(/\bby \([^)]*\)/g, '')
      for (const [word] of rest.matchAll(/[a-z_]+/g)) assert.ok(functions.has(word), word)
      // Counters need a rate, histograms their buckets.
      const grows = /_(?:total|bucket)\{/.test(expr)
      assert.equal(
        /\b(?:rate|increase)\(\w+\{[^}]*\}\[\$__rate_interval\]\)/.test(expr),
        grows,
        expr,
      )
      assert.equal(expr.startsWith('histogram_quantile('), /_bucket\{/.test(expr), expr)
    }
  })

  it('uses the chosen data source', () => {
    const [source, instance] = templating.list
    assert.deepEqual(
      [source?.name, source?.type, source?.query],
      ['datasource', 'datasource', 'prometheus'],
    )
    const chosen = { type: 'prometheus', uid: '${datasource}' }
    for (const { datasource } of panels) assert.deepEqual(datasource, chosen)
    assert.deepEqual(
      [instance?.name, instance?.type, instance?.datasource],
      ['instance', 'query', chosen],
    )
    const query = typeof instance?.query === 'object' ? instance.query.query : ''
    const asked = /^label_values\((\w+), instance\)$/.exec(query)?.[1] ?? ''
    assert.ok(exposed.has(asked), query)
  })

  it('has a layout that Grafana accepts', () => {
    assert.ok(Number.isInteger(schemaVersion) && schemaVersion >= 36 && schemaVersion <= 42)
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
    const cells = new Set<string>()
    for (const { title, type, gridPos, fieldConfig, targets } of panels) {
      assert.ok(type === 'stat' || type === 'timeseries', title)
      assert.ok(units.has(fieldConfig.defaults.unit), title)
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
      assert.ok(gridPos.x + gridPos.w <= 24, title)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          assert.ok(!cells.has(`${x} ${y}`), `${title} lies over another`)
          cells.add(`${x} ${y}`)
        }
      // By default Grafana shows everything over 80 in red.
      if (type === 'stat') assert.equal(fieldConfig.defaults.thresholds?.steps[0]?.value, null)
    }
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
