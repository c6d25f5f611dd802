import type { WebhookSummary } from '../../../shared/api/api.ts'
import { sampleNames } from '../../../shared/samples/samples.ts'
import { type Markup, markup } from '../markup.ts'

/** Asks what a delivery would do: a sample, or the newest event, which may still have its payload. */
export const renderTry = (webhook: WebhookSummary, newest: string | undefined): Markup | false => {
  const { path, enabled } = webhook
  const samples = listSamples(webhook)
  return (
    enabled &&
    markup`
    <details>
      <summary>Try it</summary>
      <form class="row" method="get" action="/ui/rules/explain">
        <input type="hidden" name="path" value="${path}">
        <label>Delivery <select name="of">${
          newest !== undefined &&
          markup`<option value="event ${newest}">the newest delivery</option>`
        }${samples.map((name) => markup`<option value="${name}">${name}</option>`)}${
          samples.length === 0 && markup`<option value="">{"text": "a sample"}</option>`
        }</select></label>
        <button aria-label="Explain: ${path}">Explain</button>
      </form>
    </details>`
  )
}

/** Those of the sender; first those that the rules name. */
const listSamples = ({ rules = [], scheme }: WebhookSummary): readonly string[] => {
  const names = sampleNames().filter((name) => name.startsWith(`${scheme}:`))
  const wanted = new Set(rules.flatMap(({ on = [] }) => on).map((event) => `${scheme}:${event}`))
  return [...names.filter((name) => wanted.has(name)), ...names.filter((name) => !wanted.has(name))]
}
