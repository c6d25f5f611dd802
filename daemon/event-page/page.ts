import type { EventDetail, TargetResult } from '../../shared/api/api.ts'
import {
  describeWhat,
  type Bar,
  toBars,
  toStages,
  describeOutput,
  describePrompt,
  describeSandbox,
  describeUsage,
  describeTargetState,
} from '../../shared/event-stages.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { formatDuration, formatLocalTime, toPlainText } from '../../shared/text.ts'
import { isFinal } from '../events/event-record.ts'
import { parseAnswer } from '../delivery/format/review.ts'
import { loadPage, type RenderedPage } from '../http/body.ts'
import { type Markup, markup, toShownLine, toShownText, webLink } from '../page/markup.ts'
import type { ButtonAction } from './links.ts'

type EventView = {
  readonly event: EventDetail
  /** The result of the button that was just pressed. */
  readonly notice?: string | undefined
  /** The target of the button, for an event that has one. */
  readonly buttonPath?: string | undefined
  /** The targets of the forms of an event that waits for an approval, or was a dry run. */
  readonly formPaths?: Partial<Record<FormAction, string>> | undefined
}

/** The answers of an owner. */
export type FormAction = 'approve' | 'reject' | 'again' | 'deliver'

export const getForms = ({ state, targets }: EventDetail): readonly FormAction[] => {
  if (state === 'waiting') return ['approve', 'reject', 'again']
  const isDryRun = state === 'done' && targets.some((target) => target.state === 'previewed')
  return isDryRun ? ['deliver'] : []
}

/** Cancels an event that is not final; runs one again whose prompt is in memory. */
export const getButton = ({ kind, state, prompt }: EventDetail): ButtonAction | undefined => {
  if (kind !== 'webhook') return undefined
  if (!isFinal(state)) return 'cancel'
  if (prompt === undefined) return undefined
  return state === 'done' ? 'runAgain' : 'retry'
}

/** The title of the window. */
const toTitle = (event: EventDetail): string =>
  `${toShownLine(describeWhat(event))}: ${event.state}`

const renderContent = (view: EventView): Markup => {
  const { event } = view
  return markup`
    ${renderHead(event)}
    ${view.notice === undefined ? undefined : markup`<p class="notice" role="status">${view.notice}</p>`}
    ${renderReason(view)}
    ${renderForms(view)}
    ${renderButton(view)}
    ${event.kind === 'webhook' ? renderStages(event) : undefined}
    ${renderTargets(event)}
    ${renderAnswer(event)}
    ${renderPrompt(event)}
    ${renderFacts(event)}`
}

const renderHead = ({
  kind,
  webhook,
  rule,
  subject,
  state,
  receivedAt,
  agent,
}: EventDetail): Markup => markup`
    <header>
      <p class="state"><span class="dot" aria-hidden="true"></span>${state}</p>
      <h1>${webLink(subject?.title ?? webhook ?? kindTitles[kind], subject?.url)}</h1>
      <p class="soft"><time datetime="${receivedAt}">${formatLocalTime(receivedAt)}</time>${
        subject === undefined || webhook === null
          ? undefined
          : markup` · <bdi>${toShownLine(webhook)}</bdi>`
      }${
        rule === undefined ? undefined : markup` · rule <bdi>${toShownLine(rule)}</bdi>`
      }${agent === null ? undefined : markup` · agent <bdi>${toShownLine(agent)}</bdi>`}</p>
    </header>`

const kindTitles = { webhook: 'Webhook', oauth: 'Accounts', daemon: 'Daemon' } as const

/** The reason of the state, and what to do about it. */
const renderReason = ({ event, buttonPath }: EventView): Markup | undefined => {
  const { detail, code, stage, state } = event
  if (detail === undefined && code === undefined) return undefined
  const isBad = state === 'failed' || state === 'rejected' || state === 'dropped'
  const where = [isBad && stage ? `${state} at ${stage}` : '', code ?? ''].filter(Boolean)
  return markup`
    <section class="${isBad ? 'reason bad' : 'reason'}">
      ${where.length === 0 ? undefined : markup`<h2>${where.join(' · ')}</h2>`}
      ${detail === undefined ? undefined : markup`<p class="lines" dir="auto">${toPlainText(detail.slice(0, 4000))}</p>`}
      ${isBad && buttonPath !== undefined ? renderRetry(event, buttonPath) : explainNoRetry(event)}
    </section>`
}

const renderRetry = ({ result }: EventDetail, path: string): Markup =>
  renderForm(path, result !== undefined ? 'Deliver again' : 'Run again')

/** The button of an event for which there is no reason to explain. */
const renderButton = ({ event, buttonPath }: EventView): Markup | undefined => {
  if (buttonPath === undefined) return undefined
  if (!isFinal(event.state)) return renderForm(buttonPath, 'Cancel')
  return event.state === 'done' ? renderForm(buttonPath, 'Run again') : undefined
}

const renderForm = (path: string, label: string): Markup =>
  markup`<form method="post" action="${path}"><button>${label}</button></form>`

const renderForms = ({ event, formPaths: paths = {} }: EventView): Markup | undefined => {
  const { approve, reject, again, deliver } = paths
  if (deliver !== undefined) return renderForm(deliver, 'Send it after all')
  if (approve === undefined || reject === undefined || again === undefined) return undefined
  const { comments } = parseAnswer(event.result ?? '')
  const boxes = comments.map(
    ({ path, line, body }, place) => markup`
        <p><label><input type="checkbox" name="with" value="${place}" checked> <code><bdi>${toShownLine(path)}</bdi></code>${
          line === undefined ? undefined : ` line ${line}`
        }<br><span class="lines" dir="auto">${toPlainText(body.slice(0, 2000))}</span></label></p>`,
  )
  return markup`
    <section class="reason">
      <h2>Send this?</h2>
      <form method="post" action="${approve}">
        <input type="hidden" name="comments" value="${comments.length}">${boxes}
        <button>Send</button>
      </form>
      ${renderForm(reject, 'Do not send')}
      <form method="post" action="${again}">
        <p><label>Or run the agent again, with your words:<br><textarea name="remark" rows="3" cols="60" maxlength="4000" required></textarea></label></p>
        <button>Run again</button>
      </form>
    </section>`
}

const explainNoRetry = ({ kind, state, prompt }: EventDetail): Markup | undefined =>
  kind === 'webhook' && (state === 'failed' || state === 'dropped') && prompt === undefined
    ? markup`<p class="soft">The prompt is no longer in memory. To run the event again, have its sender deliver it again.</p>`
    : undefined

const renderTargets = (event: EventDetail): Markup | undefined =>
  event.targets.length === 0
    ? undefined
    : markup`
    <section>
      <h2>${event.state === 'waiting' ? 'Would be sent to' : 'Delivered to'}</h2>
      <ul class="targets">${event.targets.map((target) => renderTarget(target, describeTargetState(event, target)))}</ul>
      ${event.links?.map(({ what, url }) => markup`<p>${webLink(isSafeToOpen(url) ? what : `${what}: ${url}`, url)}</p>`)}
      ${event.outputs?.map((output) => markup`<p class="soft lines" dir="auto">${toPlainText(describeOutput(output))}</p>`)}
    </section>`

const renderTarget = (
  { target, state, attempts, code, detail, preview }: TargetResult,
  word: string,
): Markup => markup`
        <li data-state="${state}"><span class="dot" aria-hidden="true"></span>
          <span><bdi class="name">${toShownLine(target)}</bdi> <span class="soft">${word}${
            attempts > 1 ? `, ${attempts} attempts` : ''
          }${code === undefined ? '' : `, ${code}`}</span>${
            detail === undefined
              ? undefined
              : markup`<br><span class="lines" dir="auto">${toPlainText(detail.slice(0, 2000))}</span>`
          }${
            preview === undefined
              ? undefined
              : markup`<details><summary>What it gets</summary><pre dir="auto">\n${toShownText(preview).text}</pre></details>`
          }</span></li>`

const renderAnswer = (event: EventDetail): Markup | undefined => {
  const { id, kind, result, state, resultPreview } = event
  if (result !== undefined)
    return markup`
    <section>
      <h2>Answer</h2>
      ${result === '' ? markup`<p class="soft">The answer is empty.</p>` : renderText(result, id)}
    </section>`
  if (kind === 'webhook' && !isFinal(state))
    return markup`
    <section>
      <h2>Answer</h2>
      <p class="soft">No answer yet. This page shows it when it arrives.</p>
    </section>`
  if (resultPreview === undefined) return undefined
  return markup`
    <section>
      <h2>Answer</h2>
      ${renderText(resultPreview, id)}
      <p class="soft">Only the beginning is still in memory.</p>
    </section>`
}

/** Open when there is no answer. */
const renderPrompt = ({ id, prompt, result }: EventDetail): Markup | undefined =>
  prompt === undefined
    ? undefined
    : markup`
    <details${result === undefined ? markup` open` : undefined}>
      <summary>Prompt</summary>
      ${renderText(prompt, id)}
    </details>`

/** HTML drops the first line break in a `pre`, so we add one. */
const renderText = (whole: string, id: string): Markup => {
  const { text, cut, hidden } = toShownText(whole)
  const notes = [
    cut > 0
      ? markup`<p class="soft">Cut here: ${cut} of ${whole.length} characters are left out. To see all: <code>doorward events show ${id}</code></p>`
      : markup``,
    hidden > 0
      ? markup`<p class="soft">Not shown: ${hidden} control or direction character${hidden === 1 ? '' : 's'}.</p>`
      : markup``,
  ]
  return markup`<pre dir="auto">\n${text}</pre>${notes}`
}

const renderFacts = (event: EventDetail): Markup => {
  const { id, deliveryId, signed, size, attempts, durations, machine } = event
  const all = Object.values(durations)
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Event', id],
    ['Delivery', deliveryId],
    ['Signature', signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'],
    ['Body', size === undefined ? undefined : `${size} bytes`],
    ['Prompt', describePrompt(event)],
    ['Sandbox', describeSandbox(event)],
    ['Used', describeUsage(event)],
    ['Runs', attempts > 1 ? String(attempts) : undefined],
    ['Machine', machine],
    ['Took', all.length > 0 ? formatDuration(all.reduce((sum, ms) => sum + ms, 0)) : undefined],
  ]
  return markup`
    <dl>${facts.map(([name, value]) =>
      value === undefined
        ? markup``
        : markup`<div><dt>${name}</dt><dd><bdi>${toShownLine(value)}</bdi></dd></div>`,
    )}</dl>`
}

/** Rows with bars. The bars are SVG with attributes: the page's policy forbids inline styles. */
const renderStages = (event: EventDetail): Markup => markup`
    <section>
      <h2>Stages</h2>
      <ol class="stages">${toBars(toStages(event)).map(renderRow)}</ol>
    </section>`

const renderRow = ({ row, from, length }: Bar): Markup => {
  const { name, state, ms, note } = row
  const label = [ms === undefined ? '' : formatDuration(ms), note ?? ''].filter(Boolean).join(', ')
  return markup`
        <li data-state="${state}"><span class="dot" aria-hidden="true"></span><span class="name">${name}</span>
          <svg class="bar" aria-hidden="true">${
            length > 0
              ? markup`<rect class="track" width="100%" height="100%" rx="4" /><rect class="fill" x="${from}%" width="${length}%" height="100%" rx="4" />`
              : undefined
          }</svg>
          <span class="said">${label}</span></li>`
}

/** Renders the page of an event; an unfinished event reloads `refreshPath`. */
type RenderEvent = (view: EventView, refreshPath: string) => RenderedPage

/** Loads the page of `assets/event`. */
export const loadEventPage = (): RenderEvent => {
  const fill = loadPage('event', `'self'`)
  return (view, refreshPath) => {
    const { event } = view
    return fill({
      title: markup`${toTitle(event)}`.html,
      state: event.state,
      content: renderContent(view).html,
      // Up to one second, browsers replace the page in the history instead of adding one.
      // A person may be writing a remark.
      refresh:
        isFinal(event.state) || event.state === 'waiting'
          ? ''
          : markup`<meta http-equiv="refresh" content="1; url=${refreshPath}" />`.html,
    })
  }
}
