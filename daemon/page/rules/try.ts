import type { WebhookSummary } from '../../../shared/api/api.ts'
import { maxSampleBytes, type SentSample } from '../../../shared/api/setup.ts'
import { sampleNames } from '../../../shared/samples/samples.ts'
import { type Markup, markup } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'

type TryParts = {
  readonly webhook: WebhookSummary
  /** Nothing can be sent to what doorward reads itself. */
  readonly isRead: boolean
  /** The id of its newest event, which may still have its payload. */
  readonly newest: string | undefined
}

const ownSample = '{"text": "a sample"}'

/** Sends a sample as the sender would, or says what a delivery would do. */
export const renderTry = (
  request: PageRequest,
  { webhook, isRead, newest }: TryParts,
): Markup | false => {
  const { path, enabled } = webhook
  if (!enabled) return false
  const samples = listSamples(webhook)
  const options = samples.map((name) => markup`<option value="${name}">${name}</option>`)
  return markup`
    <details>
      <summary>Try it</summary>
      <div class="stack">
        <form class="row" method="get" action="/ui/rules/explain">
          <input type="hidden" name="path" value="${path}">
          <label>Delivery <select name="of">${
            newest !== undefined &&
            markup`<option value="event ${newest}">the newest delivery</option>`
          }${options}${
            samples.length === 0 && markup`<option value="">${ownSample}</option>`
          }</select></label>
          <button aria-label="Explain: ${path}">Explain</button>
        </form>
        ${!isRead && renderSend(request, path, options)}
      </div>
    </details>`
}

const renderSend = (request: PageRequest, path: string, options: readonly Markup[]): Markup =>
  actionForm(request, 'send', {
    label: 'Send a sample',
    fields: { path },
    describe: path,
    content:
      options.length > 0
        ? markup`<label>Sample <select name="sample">${options}</select></label> `
        : markup`<label>Payload, JSON <textarea name="payload" rows="3" maxlength="${String(maxSampleBytes)}" spellcheck="false" required>${ownSample}</textarea></label> `,
  })

/** The samples of the sender; first those that the rules name. */
const listSamples = ({ rules = [], scheme }: WebhookSummary): readonly string[] => {
  const names = sampleNames().filter((name) => name.startsWith(`${scheme}:`))
  const wanted = new Set(rules.flatMap(({ on = [] }) => on).map((event) => `${scheme}:${event}`))
  return [...names.filter((name) => wanted.has(name)), ...names.filter((name) => !wanted.has(name))]
}

/** The action `send` leads to the event that the sample became. */
export const sendSample: Action = async ({ api }, form) => {
  const [sample, payload] = [form.get('sample'), form.get('payload')]
  const { id, status } = await api.post<SentSample>('/webhooks/sample', {
    path: form.get('path') ?? '',
    ...(sample !== null && { sample }),
    ...(payload !== null && { payload }),
  })
  const words = Object.hasOwn(outcomes, status) ? outcomes[status] : undefined
  return {
    notice: `The sample came in${words ?? ''}.`,
    to: `/ui/events/${encodeURIComponent(id)}`,
  }
}

const outcomes: Readonly<Record<string, string>> = {
  filtered: ', and runs nothing',
  ping: ', and runs nothing',
  challenge: ', and runs nothing',
  duplicate: '; it was here before, and runs nothing',
}
