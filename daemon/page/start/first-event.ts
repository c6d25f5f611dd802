import type { EventRecord } from '../../../shared/api/api.ts'
import { describeWhat } from '../../../shared/event-stages.ts'
import { type Markup, markup, shownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { type Choices, readChoices, toFields, toStart } from './choices.ts'
import type { Step } from './step.ts'

/** What is sent, or done, for a recipe without its sender. */
const samples: Readonly<Record<string, string>> = {
  'github-review': 'github:pull_request.opened',
  'github-mention': 'github:issue_comment.created',
  'ci-failure': 'github:workflow_run.completed',
}

const causes: Readonly<Record<string, string>> = {
  'github-review': 'Open a pull request in a repository of the bot.',
  'github-mention': 'Name the bot in a comment on a pull request or an issue.',
  'github-fix': 'Give an issue the label doorward.',
  'ci-failure': 'Push something to a pull request whose workflow fails.',
  'sentry-fix': 'Add an alert rule at Sentry that notifies the integration.',
  'slack-agent': 'Mention the app in Slack.',
  'telegram-agent': 'Write to the bot in Telegram.',
  'weekly-digest': 'It runs every Monday at nine.',
}

/** Waits for the first event of the rule that was written. */
export const firstEventStep = async (request: PageRequest, choices: Choices): Promise<Step> => {
  const events = await findEvents(request, choices)
  const hasCome = events.length > 0
  return {
    name: 'event',
    title: 'The first event',
    isDone: hasCome,
    content: markup`
      ${
        choices.path === undefined
          ? markup`<p class="soft">It appears here as soon as a rule is written and its sender sends something.</p>`
          : hasCome
            ? markup`<ul class="stack">${events.map(renderEvent)}</ul>`
            : markup`<p role="status">Waiting for the first event. ${causes[choices.recipe ?? ''] ?? ''}</p>`
      }
      ${choices.path !== undefined && renderSample(request, choices)}`,
  }
}

const maxShown = 5

const findEvents = async (
  { api }: PageRequest,
  { path, since = '' }: Choices,
): Promise<readonly EventRecord[]> => {
  if (path === undefined) return []
  const query = new URLSearchParams({ webhook: path, limit: '50' })
  const { events } = await api.get<{ events: readonly EventRecord[] }>(
    `/events?${query.toString()}`,
  )
  return events.filter(({ receivedAt }) => receivedAt >= since).slice(0, maxShown)
}

const renderEvent = (event: EventRecord): Markup => markup`
  <li class="row"><span class="state" data-state="${event.state}">${event.state}</span>
    <a href="/ui/events/${event.id}">${shownLine(describeWhat(event))}</a>
    <span class="soft">${shownLine(event.detail ?? event.resultPreview ?? '')}</span></li>`

const renderSample = (request: PageRequest, choices: Choices): Markup | undefined => {
  const { path = '', recipe = '' } = choices
  const isSchedule = path.startsWith('schedule:')
  if (!isSchedule && !Object.hasOwn(samples, recipe)) return undefined
  return markup`
    ${actionForm(request, 'sample', {
      label: isSchedule ? 'Run it now' : 'Send a sample',
      fields: toFields(choices),
    })}
    ${
      !isSchedule &&
      markup`<p class="soft">A sample is signed as its sender signs. Its pull request does not exist, so an agent that fetches code may find none.</p>`
    }`
}

export const sendSample: Action = async ({ api }, form) => {
  const choices = readChoices(form)
  const { path = '', recipe = '', repo } = choices
  const to = toStart(choices)
  if (path.startsWith('schedule:')) {
    await api.post(`/schedules/${encodeURIComponent(path.slice('schedule:'.length))}/run`, {})
    return { notice: 'It runs now.', to }
  }
  const sample = Object.hasOwn(samples, recipe) ? (samples[recipe] ?? '') : ''
  await api.post('/webhooks/sample', {
    path,
    sample,
    ...(repo !== undefined && { repository: repo }),
  })
  return { notice: 'The sample was sent.', to }
}
