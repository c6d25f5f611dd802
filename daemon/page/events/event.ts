import type { AgentPrompt, EventDetail, PastEvent } from '../../../shared/api/api.ts'
import { describeWhat } from '../../../shared/event-stages.ts'
import { toPlainText } from '../../../shared/text.ts'
import { isFinal } from '../../events/event-record.ts'
import { knownError } from '../../util/assets.ts'
import { type Markup, markup, shownLine, toShownLine, webLink } from '../markup.ts'
import { actionForm, type PageRequest, type View } from '../view.ts'
import { apiPath, eventActions, previewDigest } from './actions.ts'
import { renderQuestion } from './approval.ts'
import { renderAgent, renderFacts, renderStages, renderTargets } from './parts.ts'
import { renderAnswer, renderPrompt } from './texts.ts'

/** One event: what it is about, what became of it and why, and what can be done with it. */
export const eventView: View = {
  path: '/ui/events/:id',
  show: async (request) => {
    const event = await request.api.get<PastEvent>(apiPath(request.params))
    const asked = request.query.has('prompt') ? await askPrompt(request) : undefined
    return {
      title: `${toShownLine(describeWhat(event))}: ${event.state}`,
      content: markup`
        ${renderHead(event, request)}
        <div class="stack">
          ${renderPast(event)}
          ${renderReason(event)}
          ${event.state === 'waiting' && markup`<section class="card"><h2>Send this?</h2>${renderQuestion(event, request)}</section>`}
          ${renderAnswer(event)}
          ${renderTargets(event)}
          ${event.kind === 'webhook' && renderStages(event)}
          ${renderAgent(event)}
          ${renderPrompt(event, asked)}
          ${renderFacts(event, request)}
          ${renderTest(event)}
          ${renderForget(event, request)}
        </div>`,
    }
  },
  actions: eventActions,
}

/** The whole prompt, or why it is not there. */
const askPrompt = async ({ api, params }: PageRequest) => {
  try {
    return { text: (await api.get<AgentPrompt>(`${apiPath(params)}/prompt`)).prompt }
  } catch (error) {
    return { problem: knownError(error).message }
  }
}

const kindTitles = { webhook: 'Webhook', oauth: 'Accounts', daemon: 'Daemon' } as const

const renderHead = (event: EventDetail, request: PageRequest): Markup => {
  const { kind, webhook, rule, subject, state, receivedAt } = event
  const from = [
    subject === undefined || webhook === null ? undefined : shownLine(webhook),
    rule === undefined ? undefined : markup`rule ${shownLine(rule)}`,
  ].flatMap((part) => (part ? [markup` · ${part}`] : []))
  return markup`
        <div class="view-head">
          <div><h1>${webLink(subject?.title ?? webhook ?? kindTitles[kind], subject?.url)}</h1>
            <p class="soft">${request.times.at(receivedAt)}${from}</p></div>
          <div class="actions"><span class="state" data-state="${state}">${state}</span>${renderButton(event, request)}</div>
        </div>`
}

/** Cancels an event that is not final; runs one again whose prompt is in memory. */
const renderButton = (event: EventDetail, request: PageRequest): Markup | undefined => {
  const { kind, state, code, targets, prompt, result } = event
  if (kind !== 'webhook' || state === 'waiting') return undefined
  if (!isFinal(state)) return actionForm(request, 'cancel', { label: 'Cancel' })
  if (prompt === undefined) return undefined
  if (['failed', 'dropped', 'expired'].includes(state) && code !== 'superseded') {
    const label = result === undefined ? 'Run again' : 'Deliver again'
    return actionForm(request, 'retry', { label, kind: 'primary' })
  }
  const isDryRun = targets.some((target) => target.state === 'previewed')
  const fields = { shown: previewDigest(event) }
  return markup`${isDryRun && actionForm(request, 'deliver', { label: 'Send it after all', kind: 'primary', fields })}${actionForm(request, 'run-again', { label: 'Run again' })}`
}

/** The reason of the state, and what to do about it. */
const renderReason = (event: EventDetail): Markup | undefined => {
  const { kind, detail, code, stage, state, prompt } = event
  if (detail === undefined && code === undefined) return undefined
  const isBad = state === 'failed' || state === 'rejected' || state === 'dropped'
  const where = [isBad && stage ? `${state} at ${stage}` : '', code ?? ''].filter(Boolean)
  const isLost = kind === 'webhook' && isBad && state !== 'rejected' && prompt === undefined
  return markup`
          <section class="card reason" data-state="${state}">
            ${where.length > 0 && markup`<h2>${where.join(' · ')}</h2>`}
            ${detail !== undefined && markup`<p class="lines" dir="auto">${toPlainText(detail.slice(0, 4000))}</p>`}
            ${isLost && markup`<p class="soft">The prompt is no longer in memory. To run the event again, have its sender deliver it again.</p>`}
          </section>`
}

const pastTexts = {
  none: 'This event is from the history, which keeps no texts.',
  kept: 'This event is from the history.',
  unreadable: 'This event is from the history. Its texts cannot be opened: their key is missing.',
} as const

const renderPast = ({ past }: PastEvent): Markup | undefined =>
  past && markup`<p class="soft">${pastTexts[past.texts]}</p>`

/** Payloads stay in the memory of the daemon, so the sender has to give the one that is tried again. */
const renderTest = ({ kind, webhook }: EventDetail): Markup | undefined =>
  kind !== 'webhook' || webhook === null
    ? undefined
    : markup`
          <details class="card"><summary>As a test</summary>
            <p>Copy the payload from the page of the sender into a file. The first command shows what would happen and runs nothing; the second sends it, signed as the sender does it.</p>
            <pre><code>doorward webhook explain ${toShownLine(webhook)} event.json
doorward webhook send ${toShownLine(webhook)} event.json --wait</code></pre></details>`

const renderForget = ({ state }: EventDetail, request: PageRequest): Markup | undefined =>
  !isFinal(state)
    ? undefined
    : markup`
          <details class="card"><summary>Forget</summary>
            <p>Removes what doorward has of its texts: prompt, answer, payload, title and links. What was sent stays where it was sent.</p>
            ${actionForm(request, 'forget', { label: 'Forget its texts', kind: 'danger' })}</details>`
