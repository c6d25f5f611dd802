import type { EventDetail } from '../../../shared/api/api.ts'
import type { CaughtUp, MissedHook } from '../../../shared/api/hooks.ts'
import { describeWhat } from '../../../shared/event-stages.ts'
import { type Markup, markup, shownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest, type View } from '../view.ts'
import { renderQuestion } from './approval.ts'
import { renderPreview } from './parts.ts'

/** The answers that ask before they are sent, and the deliveries that did not arrive. */
export const waitingView: View = {
  path: '/ui/waiting',
  show: async (request) => {
    const { approvals = [] } = request.status
    const [events, { hooks }] = await Promise.all([
      readWaiting(
        approvals.slice(0, mostShown).map(({ id }) => id),
        request,
      ),
      request.api.get<{ hooks: readonly MissedHook[] }>('/events/missed'),
    ])
    const missed = hooks.filter(({ waiting, problem }) => waiting.length > 0 || problem)
    const more = approvals.length - events.length
    return {
      title: 'Waiting',
      content: markup`
        <div class="view-head"><h1>Waiting</h1></div>
        <div class="stack">
          ${events.length + missed.length === 0 && markup`<p class="empty">Nothing waits for you.</p>`}
          ${events.map((event) => renderApproval(event, request))}
          ${more > 0 && markup`<p class="soft">${more} more come when these are answered.</p>`}
          ${missed.map((hook) => renderMissed(hook, request))}
        </div>`,
    }
  },
  actions: {
    run: async (request, form) => decide('run', request, form),
    leave: async (request, form) => decide('skip', request, form),
  },
}

const mostShown = 20
/** A sender may have many pages. */
const limitMs = 5 * 60_000

/** An event that was answered meanwhile is left out. */
const readWaiting = async (
  ids: readonly string[],
  { api }: PageRequest,
): Promise<readonly EventDetail[]> => {
  const found = await Promise.all(
    ids.map(async (id) => api.get<EventDetail>(`/events/${id}`).catch(() => undefined)),
  )
  return found.flatMap((event) => (event?.state === 'waiting' ? [event] : []))
}

const renderApproval = (event: EventDetail, request: PageRequest): Markup => {
  const { id, targets, receivedAt } = event
  return markup`
          <section class="card" id="waiting-${id}">
            <h2><a href="/ui/events/${id}">${shownLine(describeWhat(event))}</a></h2>
            <p class="soft">${request.times.at(receivedAt)}</p>
            <ul class="targets">${targets.map(
              ({ target, preview }) =>
                markup`<li data-state="waiting"><span class="dot" aria-hidden="true"></span><div>${shownLine(target)}${
                  preview !== undefined && renderPreview(preview, true)
                }</div></li>`,
            )}</ul>
            ${renderQuestion(event, request, 'waiting')}
          </section>`
}

const mostRows = 50

const renderMissed = (hook: MissedHook, request: PageRequest): Markup => {
  const { path, repository, waiting, problem, hint } = hook
  const fields = { path }
  const describe = `what ${repository} did not deliver`
  return markup`
          <section class="card">
            <h2>Not delivered by ${shownLine(repository)}</h2>
            <p class="soft">These did not arrive at ${shownLine(path)} while this machine slept or was off.</p>
            ${problem !== undefined && markup`<p role="alert">${problem}${hint !== undefined && ` (${hint})`}</p>`}
            ${
              waiting.length > 0 &&
              markup`<div class="table"><table>
              <thead><tr><th scope="col">Event</th><th scope="col">Sent</th><th scope="col">Answer</th></tr></thead>
              <tbody>${waiting
                .slice(0, mostRows)
                .map(
                  ({ event, at, answer }) =>
                    markup`<tr><th scope="row">${shownLine(event)}</th><td class="soft">${request.times.at(at)}</td><td>${shownLine(answer)}</td></tr>`,
                )}</tbody></table></div>
            ${waiting.length > mostRows && markup`<p class="soft">and ${waiting.length - mostRows} more</p>`}
            <div class="actions">${actionForm(request, 'run', { label: 'Run them', kind: 'primary', fields, describe })}${actionForm(request, 'leave', { label: 'Leave them', fields, describe })}</div>`
            }
          </section>`
}

const decide = async (
  what: 'run' | 'skip',
  { api }: PageRequest,
  form: URLSearchParams,
): ReturnType<Action> => {
  const path = form.get('path') ?? ''
  const body = { do: what, path }
  const { run, skipped, refused, waiting, problem } = await api.post<CaughtUp>(
    '/events/missed',
    body,
    limitMs,
  )
  const counts = [
    [run, 'run'],
    [skipped, 'left'],
    [refused, 'refused, or no longer at the sender'],
    [waiting, 'waiting'],
  ] as const
  const said = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  if (problem !== undefined) said.push(`stopped early: ${problem}`)
  return { notice: said.join(', ') || 'nothing was missed' }
}
