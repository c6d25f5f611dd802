import type { EventRecord } from '../../../shared/api/api.ts'
import { describeWhat, formatCost } from '../../../shared/event-stages.ts'
import { type Markup, markup, shownLine } from '../markup.ts'
import type { PageRequest, View } from '../view.ts'

/** The newest events, by what they are about. */
export const eventsView: View = {
  path: '/ui/events',
  show: async (request) => {
    const { events } = await request.api.get<{ events: readonly EventRecord[] }>('/events?limit=50')
    return {
      title: 'Events',
      content: markup`
        <div class="view-head"><h1>Events</h1></div>
        ${
          events.length === 0
            ? markup`<p class="empty">No event yet. <a href="/ui/start">Add a rule</a>, or send a sample.</p>`
            : renderTable(events, request)
        }`,
    }
  },
}

const renderTable = (events: readonly EventRecord[], request: PageRequest): Markup => markup`
  <div class="table"><table>
    <thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col">Result</th><th scope="col" class="number">Cost</th><th scope="col">When</th></tr></thead>
    <tbody>${events.map((event) => renderRow(event, request))}</tbody>
  </table></div>`

const renderRow = (event: EventRecord, { times }: PageRequest): Markup => markup`
  <tr id="event-${event.id}">
    <th scope="row"><a href="/ui/events/${event.id}">${shownLine(describeWhat(event))}</a></th>
    <td><span class="state" data-state="${event.state}">${event.state}</span></td>
    <td>${shownLine(event.resultPreview ?? event.detail ?? '')}</td>
    <td class="number">${formatCost(event)}</td>
    <td class="soft">${times.at(event.receivedAt)}</td>
  </tr>`
