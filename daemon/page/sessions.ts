import type { SessionList, SessionSummary } from '../../shared/api/sessions.ts'
import { type Markup, markup, shownLine } from './markup.ts'
import { actionForm, type PageRequest, type View } from './view.ts'

/** Conversations that go on from one event to the next. */
export const sessionsView: View = {
  path: '/ui/sessions',
  show: async (request) => {
    const { sessions } = await request.api.get<SessionList>('/sessions')
    return {
      title: 'Sessions',
      content: markup`
        <div class="view-head"><h1>Sessions</h1></div>
        ${
          sessions.length === 0
            ? markup`<p class="empty">No conversation goes on. A rule with <code>session</code> begins one.</p>`
            : renderTable(sessions, request)
        }`,
    }
  },
  actions: {
    forget: async ({ api }, form) => {
      const { key } = await api.delete<SessionSummary>(
        `/sessions/${encodeURIComponent(form.get('id') ?? '')}`,
      )
      return { notice: `Forgot ${key}: the next event starts a new conversation` }
    },
  },
}

const renderTable = (sessions: readonly SessionSummary[], request: PageRequest): Markup => markup`
  <div class="table"><table>
    <thead><tr><th scope="col">About</th><th scope="col">Rule</th><th scope="col" class="number">Events</th><th scope="col" class="number">Size</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">Go on with it at the terminal</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead>
    <tbody>${sessions.map((session) => renderRow(session, request))}</tbody>
  </table></div>`

const renderRow = (session: SessionSummary, request: PageRequest): Markup => {
  const { id, key, webhook, rule, program, turns, bytes, isRunning, isSealed, why, event } = session
  const { times } = request
  return markup`
    <tr id="session-${id}">
      <th scope="row"><a href="/ui/events/${event}">${shownLine(key)}</a>${
        why !== undefined &&
        markup`<br><span class="soft">the next event starts over: ${shownLine(why)}</span>`
      }</th>
      <td>${shownLine(rule ?? webhook)}<br><span class="soft">${program}</span></td>
      <td class="number">${turns}</td>
      <td class="number">${Math.ceil(bytes / 1000)} kB${isSealed && markup`<br><span class="soft">sealed</span>`}</td>
      <td>${isRunning ? markup`<span class="state" data-state="running">running</span>` : times.at(session.usedAt)}</td>
      <td class="soft">${times.at(session.expiresAt)}</td>
      <td>${bytes > 0 && markup`<code>doorward session open ${id}</code>`}</td>
      <td>${actionForm(request, 'forget', { label: 'Forget', fields: { id }, kind: 'danger', describe: key })}</td>
    </tr>`
}
