import type { EventDetail, TargetResult } from '../../../shared/api/api.ts'
import {
  type Bar,
  describeOutput,
  describeTargetState,
  describeUsage,
  toBars,
  toStages,
} from '../../../shared/event-stages.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { formatDuration, toPlainText } from '../../../shared/text.ts'
import { type Markup, markup, shownLine, toShownText, webLink } from '../markup.ts'
import type { PageRequest } from '../view.ts'

/* The parts of the view of an event that only show something. */

/** Rows with bars. The bars are SVG with attributes: the page's policy forbids inline styles. */
export const renderStages = (event: EventDetail): Markup => markup`
  <section class="card"><h2>Stages</h2>
    <ol class="stages">${toBars(toStages(event)).map(renderStage)}</ol></section>`

const renderStage = ({ row, from, length }: Bar): Markup => {
  const { name, state, ms, note } = row
  const label = [ms === undefined ? '' : formatDuration(ms), note ?? ''].filter(Boolean).join(', ')
  return markup`
    <li data-state="${state}"><span class="dot" aria-hidden="true"></span><span>${name}</span>
      <svg class="bar" aria-hidden="true">${
        length > 0 &&
        markup`<rect class="track" width="100%" height="100%" rx="4" /><rect class="fill" x="${from}%" width="${length}%" height="100%" rx="4" />`
      }</svg>
      <span class="said">${label}</span></li>`
}

export const renderTargets = (event: EventDetail): Markup | undefined =>
  event.targets.length === 0
    ? undefined
    : markup`
  <section class="card"><h2>${event.state === 'waiting' ? 'Would be sent to' : 'Delivered to'}</h2>
    <ul class="targets">${event.targets.map((target) => renderTarget(target, describeTargetState(event, target)))}</ul>
    ${event.links?.map(({ what, url }) => markup`<p>${webLink(isSafeToOpen(url) ? what : `${what}: ${url}`, url)}</p>`)}
    ${event.outputs?.map((output) => markup`<p class="soft lines" dir="auto">${toPlainText(describeOutput(output))}</p>`)}
  </section>`

const renderTarget = (
  { target, state, attempts, code, detail, preview }: TargetResult,
  word: string,
): Markup => markup`
    <li data-state="${state}"><span class="dot" aria-hidden="true"></span>
      <div>${shownLine(target)} <span class="soft">${word}${attempts > 1 && `, ${attempts} attempts`}${
        code !== undefined && `, ${code}`
      }</span>${
        detail !== undefined &&
        markup`<p class="lines" dir="auto">${toPlainText(detail.slice(0, 2000))}</p>`
      }${preview !== undefined && renderPreview(preview)}</div></li>`

/** The exact text for a target. */
export const renderPreview = (preview: string, isOpen = false): Markup => {
  const { text, cut, hidden } = toShownText(preview)
  return markup`<details${isOpen && markup` open`}><summary>What it gets</summary><pre dir="auto">\n${text}</pre>${
    cut + hidden > 0 &&
    markup`<p class="soft">Not shown: ${cut} more characters, ${hidden} control or direction characters.</p>`
  }</details>`
}

/** What the agent had: the parts of its prompt and what they left out, its sandbox, and its conversation. */
export const renderAgent = (event: EventDetail): Markup | undefined => {
  const { agent, promptSize, context = [], sandbox, session, machine, attempts } = event
  if (agent === null || (promptSize === undefined && sandbox === undefined)) return undefined
  return markup`
  <section class="card"><h2>What the agent had</h2>
    ${renderList([
      ['Agent', agent],
      ['Prompt', promptSize === undefined ? undefined : `${promptSize} bytes`],
      ['Used', describeUsage(event)],
      ['Sandbox', sandbox === null ? 'none: it could reach what you can' : sandbox?.kind],
      ['Network', sandbox?.network],
      ['Refused', sandbox?.refused?.join(', ')],
      ['Session', session && describeSession(session)],
      ['Runs', attempts > 1 ? String(attempts) : undefined],
      ['Machine', machine],
    ])}
    ${context.length > 0 && renderContexts(context)}
  </section>`
}

const describeSession = ({ key, turn, state, why }: NonNullable<EventDetail['session']>): string =>
  `${key}, turn ${turn}, ${state}${why === undefined ? '' : `: ${why}`}`

const renderContexts = (context: NonNullable<EventDetail['context']>): Markup => markup`
    <div class="table"><table>
      <thead><tr><th scope="col">Part of the prompt</th><th scope="col" class="number">Bytes</th><th scope="col">Left out</th></tr></thead>
      <tbody>${context.map(
        ({ name, bytes, leftOut }) =>
          markup`<tr><th scope="row">${shownLine(name)}</th><td class="number">${bytes}</td><td>${shownLine(leftOut ?? 'nothing')}</td></tr>`,
      )}</tbody></table></div>`

export const renderFacts = (event: EventDetail, { times }: PageRequest): Markup => {
  const { id, deliveryId, signed, size, receivedAt, durations } = event
  const all = Object.values(durations)
  const signature = signed ? 'valid' : 'none: no secret is set'
  return markup`
  <section class="card"><h2>Delivery</h2>
    ${renderList([
      ['Received', times.exact(receivedAt)],
      ['Took', all.length > 0 ? formatDuration(all.reduce((sum, ms) => sum + ms, 0)) : undefined],
      ['Event', id],
      ['Id of the sender', deliveryId],
      ['Signature', signed === undefined ? undefined : signature],
      ['Body', size === undefined ? undefined : `${size} bytes`],
    ])}
  </section>`
}

type Fact = readonly [name: string, value: string | Markup | undefined]

const renderList = (facts: readonly Fact[]): Markup => markup`
    <dl class="facts">${facts.map(([name, value]) =>
      value === undefined
        ? markup``
        : markup`<div><dt>${name}</dt><dd>${typeof value === 'string' ? shownLine(value) : value}</dd></div>`,
    )}</dl>`
