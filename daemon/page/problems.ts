import type { SourceSummary, StatusProblem } from '../../shared/api/api.ts'
import { type Markup, markup, shownLine } from './markup.ts'
import type { View } from './view.ts'

/** The view of the current problems, each with the way out. */
export const problemsView: View = {
  path: '/ui/problems',
  show: async ({ status: { problems, sources = [] }, times }) => {
    const known = new Set(sources.flatMap(({ problem }) => (problem ? [toKey(problem)] : [])))
    const listed = problems.filter((problem) => !known.has(toKey(problem)))
    const apart = sources.filter(({ state }) => state !== 'connected')
    const isFine = listed.length === 0 && apart.length === 0
    return Promise.resolve({
      title: 'Problems',
      content: markup`
        <div class="view-head"><h1>Problems</h1></div>
        ${
          isFine
            ? markup`<p class="empty">Nothing is wrong.</p>`
            : markup`<ul class="stack">${listed.map(renderProblem)}${apart.map((source) =>
                renderSource(source, source.lastEventAt && times.ago(source.lastEventAt)),
              )}</ul>`
        }
        <p class="soft below">What is not seen from here, such as the clock or the start at login, is checked by <code>doorward doctor</code></p>`,
    })
  },
}

const toKey = ({ code, detail }: StatusProblem): string => `${code} ${detail}`

const renderProblem = ({ code, detail, hint, about = {} }: StatusProblem): Markup => markup`
  <li class="card">
    <h2>${shownLine(detail)}</h2>
    <p><code>${hint}</code></p>
    <p class="row soft"><span>${code}</span>${
      about.event !== undefined &&
      markup`<a href="/ui/events/${encodeURIComponent(about.event)}">its event</a>`
    }${
      about.webhook !== undefined &&
      markup`<a href="/ui/rules#${encodeURIComponent(about.webhook)}">${shownLine(about.webhook)}</a>`
    }${about.provider !== undefined && markup`<a href="/ui/logins">Logins and bots</a>`}</p>
  </li>`

/** What brings events, while it does not. */
const renderSource = (
  { kind, state, how, webhooks, problem }: SourceSummary,
  lastEvent: Markup | '' | undefined,
): Markup => markup`
  <li class="card">
    <h2>${problem ? shownLine(problem.detail) : markup`${kind} is not connected`}</h2>
    ${problem && markup`<p><code>${problem.hint}</code></p>`}
    <p class="row soft"><span class="state" data-state="${state === 'failed' ? 'failed' : 'waiting'}">${stateWords[state]}</span>
      <span>${how}</span>${webhooks.map((path) => markup`<span>${shownLine(path)}</span>`)}${
        lastEvent !== undefined && lastEvent !== '' && markup`<span>last event ${lastEvent}</span>`
      }</p>
  </li>`

const stateWords: Readonly<Record<SourceSummary['state'], string>> = {
  connecting: 'connecting',
  connected: 'connected',
  waiting: 'connects again soon',
  failed: 'stopped',
}
