import type { EventDetail, TargetResult } from '../../shared/api.ts'
import { type Bar, toBars, toStages, describeTargetState } from '../../shared/event-stages.ts'
import { formatDuration, formatLocalTime, toPlainLine, toPlainText } from '../../shared/text.ts'
import { isFinal } from '../events/event-record.ts'
import { escapeHtml, loadPage, type RenderedPage } from '../http/body.ts'

type EventView = {
  readonly event: EventDetail
  /** What came of the button that was pressed just now. */
  readonly notice?: string | undefined
  /** Where the retry button leads, on a page of an event that may be run again. */
  readonly retryPath?: string | undefined
}

/** True for an event that its page offers to run again: it failed, and what it needs is in memory. */
export const offersRetry = ({ kind, state, prompt }: EventDetail): boolean =>
  kind === 'webhook' && (state === 'failed' || state === 'dropped') && prompt !== undefined

/** What the window is called: no word of a payload. */
const toTitle = ({ kind, webhook, state }: EventDetail): string =>
  `${shownLine(webhook ?? kind)}: ${state}`

/** Everything that is known of one event, every word of it as plain text. */
const eventContent = (view: EventView): Markup => {
  const { event } = view
  return markup`
    ${renderHead(event)}
    ${view.notice === undefined ? undefined : markup`<p class="notice" role="status">${view.notice}</p>`}
    ${renderReason(view)}
    ${event.kind === 'webhook' ? stagePicture(event) : undefined}
    ${renderTargets(event)}
    ${renderAnswer(event)}
    ${renderPrompt(event)}
    ${renderFacts(event)}`
}

const renderHead = ({ kind, webhook, state, receivedAt, agent }: EventDetail): Markup => markup`
    <header>
      <p class="state"><span class="dot" aria-hidden="true"></span>${state}</p>
      <h1><bdi>${shownLine(webhook ?? kindTitles[kind])}</bdi></h1>
      <p class="soft"><time datetime="${receivedAt}">${formatLocalTime(receivedAt)}</time>${
        agent === null ? undefined : markup` · agent <bdi>${shownLine(agent)}</bdi>`
      }</p>
    </header>`

const kindTitles = { webhook: 'Webhook', oauth: 'Accounts', daemon: 'Daemon' } as const

/** Why it ended as it did, and the way out of it. */
const renderReason = ({ event, retryPath }: EventView): Markup | undefined => {
  const { detail, code, stage, state } = event
  if (detail === undefined && code === undefined) return undefined
  const isBad = state === 'failed' || state === 'rejected' || state === 'dropped'
  const where = [isBad && stage ? `${state} at ${stage}` : '', code ?? ''].filter(Boolean)
  return markup`
    <section class="${isBad ? 'reason bad' : 'reason'}">
      ${where.length === 0 ? undefined : markup`<h2>${where.join(' · ')}</h2>`}
      ${detail === undefined ? undefined : markup`<p class="lines" dir="auto">${toPlainText(detail.slice(0, 4000))}</p>`}
      ${retryPath === undefined ? noRetry(event) : retryForm(event, retryPath)}
    </section>`
}

const retryForm = ({ result }: EventDetail, path: string): Markup => {
  const what = result !== undefined ? 'Deliver again' : 'Run again'
  return markup`<form method="post" action="${path}"><button>${what}</button></form>`
}

const noRetry = ({ kind, state, prompt }: EventDetail): Markup | undefined =>
  kind === 'webhook' && (state === 'failed' || state === 'dropped') && prompt === undefined
    ? markup`<p class="soft">Its prompt is no longer in memory: to run it again, deliver it again from the sender.</p>`
    : undefined

const renderTargets = (event: EventDetail): Markup | undefined =>
  event.targets.length === 0
    ? undefined
    : markup`
    <section>
      <h2>Delivered to</h2>
      <ul class="targets">${event.targets.map((target) => renderTarget(target, describeTargetState(event, target)))}</ul>
    </section>`

const renderTarget = (
  { target, state, attempts, code, detail }: TargetResult,
  word: string,
): Markup => markup`
        <li data-state="${state}"><span class="dot" aria-hidden="true"></span>
          <span><bdi class="name">${shownLine(target)}</bdi> <span class="soft">${word}${
            attempts > 1 ? `, ${attempts} attempts` : ''
          }${code === undefined ? '' : `, ${code}`}</span>${
            detail === undefined
              ? undefined
              : markup`<br><span class="lines" dir="auto">${toPlainText(detail.slice(0, 2000))}</span>`
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
      <p class="soft">There is none yet. This page shows it as soon as there is.</p>
    </section>`
  if (resultPreview === undefined) return undefined
  return markup`
    <section>
      <h2>Answer</h2>
      ${renderText(resultPreview, id)}
      <p class="soft">Only its beginning is still in memory.</p>
    </section>`
}

/** Open where it is all there is to see. */
const renderPrompt = ({ id, prompt, result }: EventDetail): Markup | undefined =>
  prompt === undefined
    ? undefined
    : markup`
    <details${result === undefined ? markup` open` : undefined}>
      <summary>Prompt</summary>
      ${renderText(prompt, id)}
    </details>`

/** HTML takes a line break away that stands first in a `pre`, so it is given one. */
const renderText = (whole: string, id: string): Markup => {
  const { text, left, hidden } = shownText(whole)
  const notes = [
    left > 0
      ? markup`<p class="soft">Cut here: ${left} of ${whole.length} characters are left out. All of it: <code>doorward events show ${id}</code></p>`
      : markup``,
    hidden > 0
      ? markup`<p class="soft">Not shown: ${hidden} control or direction character${hidden === 1 ? '' : 's'}.</p>`
      : markup``,
  ]
  return markup`<pre dir="auto">\n${text}</pre>${notes}`
}

const renderFacts = (event: EventDetail): Markup => {
  const { id, deliveryId, signed, size, attempts, durations } = event
  const all = Object.values(durations)
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Event', id],
    ['Delivery', deliveryId],
    ['Signature', signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'],
    ['Body', size === undefined ? undefined : `${size} bytes`],
    ['Runs', attempts > 1 ? String(attempts) : undefined],
    ['Took', all.length > 0 ? formatDuration(all.reduce((sum, ms) => sum + ms, 0)) : undefined],
  ]
  return markup`
    <dl>${facts.map(([name, value]) =>
      value === undefined
        ? markup``
        : markup`<div><dt>${name}</dt><dd><bdi>${shownLine(value)}</bdi></dd></div>`,
    )}</dl>`
}

/** Text that is HTML already. Only `markup` makes it. */
type Markup = { readonly html: string }

type Part = Markup | readonly Markup[] | string | number | undefined

/** A template of HTML: whatever is put into it is escaped, unless `markup` has made it. */
const markup = (texts: TemplateStringsArray, ...parts: readonly Part[]): Markup => ({
  html: texts.map((text, place) => `${text}${toHtml(parts[place])}`).join(''),
})

const toHtml = (part: Part): string => {
  if (part === undefined) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(({ html }) => html).join('')
}

/** A text as the page shows it, and what it does not show of it. */
type ShownText = {
  readonly text: string
  /** Characters after the cut, in UTF-16 units. */
  readonly left: number
  /** Control, escape and direction characters that were taken out of what is shown. */
  readonly hidden: number
}

const longest = 100_000
const longestLine = 300

/** The first 100,000 characters without those that could turn or hide others. */
export const shownText = (whole: string): ShownText => {
  const first = whole.slice(0, longest).replace(halfCharacter, '')
  const text = toPlainText(first)
  const hidden = first.replaceAll('\r\n', '\n').length - text.length
  return { text, left: whole.length - first.length, hidden }
}

/** A word of a sender or a program on one line, cut at 300 characters. */
export const shownLine = (whole: string): string => {
  const line = toPlainLine(whole.slice(0, longestLine * 2))
  return line.length > longestLine
    ? `${line.slice(0, longestLine).replace(halfCharacter, '')}…`
    : line
}

const halfCharacter = /[\ud800-\udbff]$/

/**
 * The stages of an event as rows with a bar each. The bars are SVG, whose attributes are no inline style,
 * which the page's policy would forbid.
 */
const stagePicture = (event: EventDetail): Markup => markup`
    <section>
      <h2>Stages</h2>
      <ol class="stages">${toBars(toStages(event)).map(renderRow)}</ol>
    </section>`

const renderRow = ({ row, from, length }: Bar): Markup => {
  const { name, state, ms, note } = row
  const said = [ms === undefined ? '' : formatDuration(ms), note ?? ''].filter(Boolean).join(', ')
  return markup`
        <li data-state="${state}"><span class="dot" aria-hidden="true"></span><span class="name">${name}</span>
          <svg class="bar" aria-hidden="true">${
            length > 0
              ? markup`<rect class="track" width="100%" height="100%" rx="4" /><rect class="fill" x="${from}%" width="${length}%" height="100%" rx="4" />`
              : undefined
          }</svg>
          <span class="said">${said}</span></li>`
}

/** Makes the page of an event; `refreshPath` is where it looks again while the event goes on. */
type RenderEvent = (view: EventView, refreshPath: string) => RenderedPage

/** Fills in the page of `assets/event`. */
export const loadEventPage = (): RenderEvent => {
  const fill = loadPage('event', `'self'`)
  return (view, refreshPath) => {
    const { event } = view
    return fill({
      title: markup`${toTitle(event)}`.html,
      state: event.state,
      content: eventContent(view).html,
      // After a second at most, browsers put it in the place of the page it follows in the history.
      refresh: isFinal(event.state)
        ? ''
        : markup`<meta http-equiv="refresh" content="1; url=${refreshPath}" />`.html,
    })
  }
}
