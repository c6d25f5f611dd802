import type { EventRecord, SourceSummary, Status, WebhookSummary } from '../../../shared/api/api.ts'
import { describeWhat } from '../../../shared/event-stages.ts'
import { type Markup, markup, shownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest, type View } from '../view.ts'
import { renderTry, sendSample } from './try.ts'

/*
 * Webhooks and their rules: what comes in from where, what it runs, and what became of it. The switches are keys of
 * webhooks.yaml, which the local API writes (`POST /webhooks/rules`).
 */
export const rulesView: View = {
  path: '/ui/rules',
  show: async (request) => {
    const { api, status } = request
    const [recent, refused] = await Promise.all([
      api.get<EventList>('/events?limit=500'),
      api.get<EventList>('/events?state=rejected&limit=100'),
    ])
    const cards = await Promise.all(
      status.webhooks.map(async (webhook) => {
        const ofThis = ({ webhook: path }: EventRecord) => path === webhook.path
        return renderWebhook(request, {
          webhook,
          source: findSource(status, webhook),
          events: recent.events.filter((event) => ofThis(event) && event.state !== 'rejected'),
          refused: refused.events.filter(ofThis),
          rules: await readRules(api, webhook),
        })
      }),
    )
    return {
      title: 'Rules',
      content: markup`
        <div class="view-head"><h1>Rules</h1></div>
        ${
          cards.length === 0
            ? markup`<p class="empty">No rule yet. <a href="/ui/start">Add the first one</a></p>`
            : markup`<div class="stack">${cards}</div>`
        }`,
    }
  },
  actions: {
    pause: async (request, form) => change(request, form, { enabled: false }, 'is paused'),
    resume: async (request, form) => change(request, form, { enabled: true }, 'runs again'),
    'dry-run': async (request, form) =>
      change(
        request,
        form,
        { dryRun: true },
        'delivers nothing: each event shows what it would send',
      ),
    deliver: async (request, form) =>
      change(request, form, { dryRun: false }, 'delivers its answers from now on'),
    send: sendSample,
  } satisfies Readonly<Record<string, Action>>,
}

type EventList = { readonly events: readonly EventRecord[] }

const change = async (
  { api }: PageRequest,
  form: URLSearchParams,
  wanted: { readonly enabled: boolean } | { readonly dryRun: boolean },
  words: string,
) => {
  const [path, rule] = [form.get('path') ?? '', form.get('rule') ?? undefined]
  await api.post('/webhooks/rules', { path, ...(rule !== undefined && { rule }), ...wanted })
  return { notice: `${rule === undefined ? `webhook ${path}` : `rule ${rule}`} ${words}` }
}

/** A rule as it is switched; a webhook without rules is its own. */
type ShownRule = Omit<NonNullable<WebhookSummary['rules']>[number], 'name'> & {
  readonly name?: string
  /** Whether its first event is older than a day, while it delivers nothing. */
  readonly isTried: boolean
}

const dayMs = 86_400_000

const readRules = async (
  api: PageRequest['api'],
  webhook: WebhookSummary,
): Promise<readonly ShownRule[]> => {
  const { agent, deliverTo, counts, dryRun, path } = webhook
  const rules: readonly Omit<ShownRule, 'isTried'>[] = webhook.rules ?? [
    { agent, deliverTo, counts, ...(dryRun && { dryRun }) },
  ]
  return Promise.all(
    rules.map(async (rule) => ({
      ...rule,
      isTried: rule.dryRun === true && (await isOlderThanDay(api, path, rule.name)),
    })),
  )
}

const isOlderThanDay = async (
  api: PageRequest['api'],
  webhook: string,
  rule: string | undefined,
): Promise<boolean> => {
  const until = new Date(Date.now() - dayMs).toISOString()
  const query = new URLSearchParams({ since: '30d', until, limit: '1', webhook })
  if (rule !== undefined) query.set('rule', rule)
  const { events } = await api.get<EventList>(`/events?${query.toString()}`)
  return events.length > 0
}

const findSource = (
  { sources = [] }: Status,
  { path }: WebhookSummary,
): SourceSummary | undefined => sources.find(({ webhooks }) => webhooks.includes(path))

type WebhookParts = {
  readonly webhook: WebhookSummary
  readonly source: SourceSummary | undefined
  readonly events: readonly EventRecord[]
  readonly refused: readonly EventRecord[]
  readonly rules: readonly ShownRule[]
}

const renderWebhook = (request: PageRequest, parts: WebhookParts): Markup => {
  const { webhook, source, events, refused, rules } = parts
  const { path, enabled, lastEventAt, url, counts } = webhook
  const fields = { path }
  const isAlone = webhook.rules === undefined
  return markup`
    <section class="card" id="${path}" aria-label="${path}">
      <div class="row"><h2>${shownLine(path)}</h2>${
        !enabled && markup`<span class="state" data-state="none">paused: it answers 404</span>`
      }</div>
      <dl class="facts">
        <div><dt>From</dt><dd>${shownLine(toSender(webhook))}</dd></div>
        ${
          source
            ? markup`<div><dt>Comes by</dt><dd>${source.how} <span class="state" data-state="${source.state === 'connected' ? 'ok' : 'waiting'}">${source.state}</span></dd></div>`
            : markup`<div><dt>Signature</dt><dd>${signatureWords[webhook.secret]}</dd></div>
        <div><dt>Address</dt><dd><code>${url}</code></dd></div>`
        }
        <div><dt>Last event</dt><dd>${lastEventAt === null ? 'none yet' : request.times.ago(lastEventAt)}</dd></div>
        ${counts.rejected > 0 && markup`<div><dt>Refused</dt><dd>${counts.rejected}</dd></div>`}
      </dl>
      ${rules.map((rule) => renderRule(request, webhook, rule))}
      ${renderEvents(request, path, events)}
      ${renderRefused(request, refused)}
      ${renderTry(request, { webhook, isRead: source !== undefined, newest: events[0]?.id })}
      ${
        (!enabled || !isAlone) &&
        markup`<div class="actions">${actionForm(request, enabled ? 'pause' : 'resume', {
          label: enabled ? 'Pause the webhook' : 'Resume',
          fields,
          describe: path,
        })}</div>`
      }
    </section>`
}

const toSender = ({ sender, scheme, secret }: WebhookSummary): string =>
  scheme === 'hmac' && secret === 'none' ? 'any sender' : (sender ?? scheme)

const signatureWords: Readonly<Record<WebhookSummary['secret'], string>> = {
  set: 'checked',
  unset: 'its secret is not set: everything is refused',
  none: 'not checked: whoever knows the address can send',
}

const renderRule = (request: PageRequest, webhook: WebhookSummary, rule: ShownRule): Markup => {
  const { name, agent, deliverTo, counts, on, dryRun = false, enabled = true, isTried } = rule
  const fields = { path: webhook.path, ...(name !== undefined && { rule: name }) }
  const describe = name ?? webhook.path
  const act = (action: string, label: string, kind?: 'primary') =>
    actionForm(request, action, { label, fields, describe, ...(kind && { kind }) })
  return markup`
    <section class="rule" aria-label="${describe}">
      <div class="row">${name !== undefined && markup`<h3>${shownLine(name)}</h3>`}${
        webhook.enabled &&
        markup`<span class="state" data-state="${enabled ? (dryRun ? 'waiting' : 'ok') : 'none'}">${
          enabled ? (dryRun ? 'dry run' : 'on') : 'paused'
        }</span>`
      }<span class="soft">${countWords(counts)}</span></div>
      <dl class="facts">
        ${on && markup`<div><dt>On</dt><dd>${shownLine(on.join(', '))}</dd></div>`}
        <div><dt>Agent</dt><dd>${shownLine(agent)}</dd></div>
        <div><dt>Goes to</dt><dd>${shownLine(deliverTo.join(', ') || 'nowhere')}</dd></div>
      </dl>
      ${
        isTried &&
        markup`<div class="ask"><p>It has shown for more than a day what it would send. Shall it send its answers from now on?</p>
        <div class="actions">${act('deliver', 'Send from now on', 'primary')}</div></div>`
      }
      <div class="actions">
        ${webhook.enabled && act(enabled ? 'pause' : 'resume', enabled ? 'Pause' : 'Resume')}
        ${dryRun ? !isTried && act('deliver', 'End the dry run') : act('dry-run', 'Dry run')}
      </div>
    </section>`
}

const countWords = (counts: WebhookSummary['counts']): string =>
  (['done', 'failed', 'dropped', 'filtered', 'duplicate'] as const)
    .flatMap((state) => (counts[state] > 0 ? [`${counts[state]} ${state}`] : []))
    .join(', ')

const shownEvents = 3

const renderEvents = (
  { times }: PageRequest,
  path: string,
  events: readonly EventRecord[],
): Markup | false =>
  events.length > 0 &&
  markup`
    <div class="rule">
      <h3>Last events</h3>
      <ul>${events
        .slice(0, shownEvents)
        .map(
          (event) =>
            markup`<li class="row"><span class="state" data-state="${event.state}">${event.state}</span><a href="/ui/events/${event.id}">${shownLine(describeWhat(event))}</a><span class="soft">${times.ago(event.receivedAt)}</span></li>`,
        )}</ul>
      <p><a href="/ui/events?of=${encodeURIComponent(path)}" aria-label="All events of ${path}">All events</a></p>
    </div>`

const renderRefused = ({ times }: PageRequest, refused: readonly EventRecord[]): Markup | false =>
  refused.length > 0 &&
  markup`
    <div class="rule">
      <h3>Refused</h3>
      <ul>${refused
        .slice(0, shownEvents)
        .map(
          (event) =>
            markup`<li><p class="row"><span class="state" data-state="rejected">${event.code ?? 'rejected'}</span><a href="/ui/events/${event.id}" aria-label="Refused event ${event.id}">its event</a><span class="soft">${times.ago(event.receivedAt)}</span></p><p>${shownLine(event.detail ?? 'no reason known')}</p></li>`,
        )}</ul>
    </div>`
