import type { UsageReport, UsageSum } from '../../shared/api/api.ts'
import { formatTokens, formatUsd } from '../../shared/event-stages.ts'
import { type Markup, markup, shownLine } from './markup.ts'
import type { View } from './view.ts'

/* What runs used and cost, as their programs say: the days as bars, and by rule, agent and model. */

const spans = { '24h': '24 hours', '7d': '7 days', '30d': '30 days' } as const
const groups = { rule: 'By rule', agent: 'By agent', model: 'By model' } as const

export const usageView: View = {
  path: '/ui/usage',
  show: async ({ api, query }) => {
    const since = Object.keys(spans).find((span) => span === query.get('since')) ?? '30d'
    const report = async (by: string) => api.get<UsageReport>(`/usage?since=${since}&by=${by}`)
    const days = await report('day')
    const tables = await Promise.all(
      Object.entries(groups).map(async ([by, title]) => renderGroup(title, await report(by))),
    )
    return {
      title: 'Usage',
      content: markup`
        <div class="view-head"><h1>Usage</h1>
          <nav aria-label="Time"><ul class="row">${Object.entries(spans).map(
            ([span, name]) =>
              markup`<li><a href="/ui/usage?since=${span}"${span === since && markup` aria-current="true"`}>${name}</a></li>`,
          )}</ul></nav></div>
        ${
          days.total.runs === 0
            ? markup`<p class="empty">No run of this time has said what it used.</p>`
            : markup`<div class="stack">
              <section class="card">
                <h2>${describeSum(days.total)}</h2>
                ${renderDays(days)}
              </section>
              ${tables}
              <p class="soft">Costs are what programs and models say of themselves. A subscription may cost nothing more.</p>
            </div>`
        }`,
    }
  },
}

const describeSum = ({ runs, costUsd, inputTokens, outputTokens }: UsageSum): string =>
  [
    runs === 1 ? '1 run' : `${runs} runs`,
    ...(costUsd === undefined ? [] : [formatUsd(costUsd)]),
    `${formatTokens(inputTokens + outputTokens)} tokens`,
  ].join(', ')

/** One row a day: a bar as long as its share of the dearest day, or of the one with most tokens. */
const renderDays = ({ rows, total }: UsageReport): Markup => {
  const size = ({ costUsd = 0, inputTokens, outputTokens }: UsageSum): number =>
    total.costUsd === undefined ? inputTokens + outputTokens : costUsd
  const most = Math.max(...rows.map(size))
  const days = rows.toSorted((a, b) => a.key.localeCompare(b.key))
  return markup`
    <ol class="days">${days.map((day) => {
      const share = most === 0 ? 0 : Math.round((size(day) / most) * 100)
      return markup`
        <li><time datetime="${day.key}">${day.key}</time>
          <svg class="bar" aria-hidden="true"><rect class="track" width="100%" height="100%" rx="4"/>${
            share > 0 && markup`<rect class="fill" width="${share}%" height="100%" rx="4"/>`
          }</svg>
          <span class="said">${describeSum(day)}</span></li>`
    })}</ol>`
}

const renderGroup = (title: string, { rows }: UsageReport): Markup => markup`
  <section>
    <h2>${title}</h2>
    <div class="table" role="region" aria-label="${title}" tabindex="0"><table>
      <thead><tr><th scope="col">Name</th><th scope="col" class="number">Runs</th><th scope="col" class="number">Input</th><th scope="col" class="number">Cached</th><th scope="col" class="number">Output</th><th scope="col" class="number">Cost</th></tr></thead>
      <tbody>${rows.map(
        ({ key, runs, inputTokens, cachedTokens, outputTokens, costUsd }) => markup`
        <tr><th scope="row">${shownLine(key)}</th><td class="number">${runs}</td><td class="number">${formatTokens(inputTokens)}</td><td class="number">${formatTokens(cachedTokens)}</td><td class="number">${formatTokens(outputTokens)}</td><td class="number">${costUsd === undefined ? '-' : formatUsd(costUsd)}</td></tr>`,
      )}</tbody>
    </table></div>
  </section>`
