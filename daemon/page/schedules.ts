import type { ScheduleRun, ScheduleSummary } from '../../shared/api/schedules.ts'
import { type Markup, markup, shownLine } from './markup.ts'
import { actionForm, type PageRequest, type View } from './view.ts'

/** What runs at a time, and when. */
export const schedulesView: View = {
  path: '/ui/schedules',
  show: async (request) => {
    const { schedules } = await request.api.get<{ schedules: readonly ScheduleSummary[] }>(
      '/schedules',
    )
    return {
      title: 'Schedules',
      content: markup`
        <div class="view-head"><h1>Schedules</h1></div>
        ${
          schedules.length === 0
            ? markup`<p class="empty">Nothing runs at a time. Add a schedule with <code>doorward schedule add</code></p>`
            : markup`<div class="stack">${schedules.map((schedule) => renderSchedule(schedule, request))}</div>`
        }`,
    }
  },
  actions: {
    run: async ({ api }, form) => {
      const name = nameIn(form)
      const { id, status } = await api.post<ScheduleRun>(toRoute(name, 'run'), {}, runLimitMs)
      return {
        notice:
          status === 'accepted'
            ? `${name} runs: event ${id}`
            : `${name} was passed over: event ${id}`,
      }
    },
    pause: async ({ api }, form) => {
      await api.post(toRoute(nameIn(form), 'pause'), {})
      return { notice: `${nameIn(form)} is paused` }
    },
    resume: async ({ api }, form) => {
      await api.post(toRoute(nameIn(form), 'resume'), {})
      return { notice: `${nameIn(form)} runs again at its times` }
    },
    leave: async ({ api }, form) => {
      await api.delete(`/schedules/missed?name=${encodeURIComponent(nameIn(form))}`)
      return { notice: `what ${nameIn(form)} has missed is left` }
    },
  },
}

/** A skip_if and a context_command may take three minutes. */
const runLimitMs = 200_000

const nameIn = (form: URLSearchParams): string => form.get('name') ?? ''
const toRoute = (name: string, action: string): string =>
  `/schedules/${encodeURIComponent(name)}/${action}`

const renderSchedule = (schedule: ScheduleSummary, request: PageRequest): Markup => {
  const { name, agent, timezone, paused, enabled, nextRuns, lastRunAt, deliverTo } = schedule
  const { times } = request
  const [next, ...later] = nextRuns
  const fields = { name }
  const act = (action: string, label: string, kind?: 'primary') =>
    actionForm(request, action, { label, fields, describe: name, ...(kind && { kind }) })
  return markup`
    <section class="card" id="schedule-${name}" aria-label="${name}">
      <div class="row"><h2>${shownLine(name)}</h2>${toState(schedule)}</div>
      ${renderMissed(schedule, request)}
      <dl class="facts">
        <div><dt>Next</dt><dd>${next === undefined ? 'no time ahead' : markup`${times.at(next)} <span class="soft">${times.ago(next)}</span>`}</dd></div>
        ${later.length > 0 && markup`<div><dt>Then</dt><dd>${later.map((at, index) => markup`${index > 0 && '; '}${times.at(at)}`)}</dd></div>`}
        <div><dt>Last run</dt><dd>${lastRunAt === null ? 'never' : times.at(lastRunAt)}</dd></div>
        <div><dt>Agent</dt><dd>${shownLine(agent)}</dd></div>
        <div><dt>Goes to</dt><dd>${shownLine(deliverTo.join(', ') || 'nowhere')}</dd></div>
        ${timezone !== times.zone && markup`<div><dt>Its time zone</dt><dd>${timezone}</dd></div>`}
      </dl>
      <div class="actions">
        ${act('run', 'Run now')}
        ${enabled && act(paused ? 'resume' : 'pause', paused ? 'Resume' : 'Pause')}
        <a class="button" href="/ui/events?of=${encodeURIComponent(`schedule:${name}`)}" aria-label="Events of ${name}">Events</a>
      </div>
    </section>`
}

const toState = ({ enabled, paused, missed }: ScheduleSummary): Markup => {
  const [state, words] = !enabled
    ? ['none', 'switched off']
    : paused
      ? ['none', 'paused']
      : missed
        ? ['waiting', 'waits for you']
        : ['ok', 'on']
  return markup`<span class="state" data-state="${state}">${words}</span>`
}

/** The question of `missed: ask`. */
const renderMissed = ({ name, missed }: ScheduleSummary, request: PageRequest): Markup | false => {
  if (!missed) return false
  const { count, newestAt } = missed
  const act = (action: string, label: string) =>
    actionForm(request, action, { label, fields: { name }, describe: `what ${name} has missed` })
  return markup`
    <div class="ask">
      <p>${count === 1 ? 'One run was' : `${count} runs were`} missed, the newest of ${request.times.at(newestAt)}: this machine slept or was off.</p>
      <div class="actions">${act('run', 'Run it now')}${act('leave', 'Leave it')}</div>
    </div>`
}
