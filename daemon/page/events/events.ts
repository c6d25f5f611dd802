import type { PastEvent } from '../../../shared/api/api.ts'
import { describeWhat, formatCost, isReload } from '../../../shared/event-stages.ts'
import { eventStates } from '../../../shared/event-states.ts'
import { type Markup, markup, shownLine } from '../markup.ts'
import type { PageRequest, View } from '../view.ts'

const pageSize = 50

type Page = {
  readonly events: readonly PastEvent[]
  /** Where older ones begin. */
  readonly cursor?: string
}

/** Events by what they are about, the newest first, from the memory and the history. What is asked for is in the address. */
export const eventsView: View = {
  path: '/ui/events',
  show: async (request) => {
    const asked = readQuery(request.query)
    const { events: found, cursor } = await request.api.get<Page>(`/events?${toApiQuery(asked)}`)
    const events = found.filter((event) => !isReload(event))
    const reloads = found.length - events.length
    const isFirst = asked.get('cursor') === null
    return {
      title: 'Events',
      content: markup`
        <div class="view-head"><h1>Events</h1></div>
        <div class="stack">
          ${renderFilters(asked, request)}
          ${events.length === 0 ? renderEmpty(asked) : renderTable(events, request)}
          ${reloads > 0 && markup`<p class="soft">Not shown: ${reloads} ${reloads === 1 ? 'reload' : 'reloads'} of the configuration.</p>`}
          ${(cursor !== undefined || !isFirst) && renderPager(asked, cursor, isFirst)}
        </div>`,
    }
  },
}

const filterNames = ['q', 'state', 'of', 'since', 'cursor'] as const

/** The filters that are set; an empty field of the form is none. */
const readQuery = (query: URLSearchParams): URLSearchParams => {
  const asked = new URLSearchParams()
  for (const name of filterNames) {
    const value = query.get(name)?.trim() ?? ''
    if (value !== '') asked.set(name, value.slice(0, 200))
  }
  return asked
}

/** Older than any event: with a time, the list goes on in the history. */
const always = '3650d'

/** `of` is the path of a webhook, with a space and a rule where one of its rules is meant. */
const toApiQuery = (asked: URLSearchParams): string => {
  const api = new URLSearchParams({ limit: String(pageSize), since: asked.get('since') ?? always })
  for (const name of ['q', 'state', 'cursor']) {
    const value = asked.get(name)
    if (value !== null) api.set(name, value)
  }
  const [webhook = '', ...rule] = (asked.get('of') ?? '').split(' ')
  if (webhook !== '') api.set('webhook', webhook)
  if (rule.length > 0) api.set('rule', rule.join(' '))
  return String(api)
}

type Option = readonly [value: string, text: string]

const renderFilters = (asked: URLSearchParams, { status }: PageRequest): Markup => {
  const origins = status.webhooks.flatMap(({ path, rules = [] }): Option[] => [
    [path, path],
    ...rules.map(({ name }): Option => [`${path} ${name}`, `${path} ${name}`]),
  ])
  const field = (name: string, label: string, options: readonly Option[]): Markup => markup`
    <label>${label} <select name="${name}">${options.map(
      ([value, text]) =>
        markup`<option value="${value}"${value === (asked.get(name) ?? '') && markup` selected`}>${text}</option>`,
    )}</select></label>`
  return markup`
          <form method="get" action="/ui/events" class="row fields" role="search">
            <label>Search <input type="search" name="q" maxlength="200" value="${asked.get('q') ?? ''}"></label>
            ${field('state', 'State', [['', 'any'], ...eventStates.map((state): Option => [state, state])])}
            ${field('of', 'From', [['', 'anywhere'], ...origins])}
            ${field('since', 'Since', [
              ['', 'ever'],
              ['1d', 'a day'],
              ['7d', 'a week'],
              ['30d', 'a month'],
            ])}
            <button>Show</button>
          </form>`
}

const renderEmpty = (asked: URLSearchParams): Markup =>
  asked.size === 0
    ? markup`<p class="empty">No event yet. <a href="/ui/start">Add a rule</a>, or send a sample.</p>`
    : markup`<p class="empty">No such event. <a href="/ui/events">Show all</a></p>`

const renderTable = (events: readonly PastEvent[], request: PageRequest): Markup => markup`
  <div class="table"><table>
    <thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col">Result</th><th scope="col" class="number">Cost</th><th scope="col">When</th></tr></thead>
    <tbody>${events.map((event) => renderRow(event, request))}</tbody>
  </table></div>`

const renderRow = (event: PastEvent, { times }: PageRequest): Markup => markup`
  <tr id="event-${event.id}">
    <th scope="row"><a href="/ui/events/${event.id}">${shownLine(describeWhat(event))}</a>${event.past && markup` <span class="soft">past</span>`}</th>
    <td><span class="state" data-state="${event.state}">${event.state}</span></td>
    <td class="result">${shownLine(event.resultPreview ?? event.detail ?? '')}</td>
    <td class="number">${formatCost(event)}</td>
    <td class="soft">${times.at(event.receivedAt)}</td>
  </tr>`

const renderPager = (
  asked: URLSearchParams,
  cursor: string | undefined,
  isFirst: boolean,
): Markup => {
  const to = (next: string | undefined): string => {
    const query = new URLSearchParams(asked)
    query.delete('cursor')
    if (next !== undefined) query.set('cursor', next)
    return `/ui/events${query.size > 0 ? '?' : ''}${String(query)}`
  }
  return markup`
          <nav class="actions" aria-label="Pages">${!isFirst && markup`<a class="button" href="${to(undefined)}">Newest</a>`}${
            cursor !== undefined && markup`<a class="button" href="${to(cursor)}">Older</a>`
          }</nav>`
}
