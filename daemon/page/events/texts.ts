import type { EventDetail } from '../../../shared/api/api.ts'
import { isFinal } from '../../events/event-record.ts'
import { parseAnswer } from '../../delivery/format/review.ts'
import { renderMarkdown } from '../markdown.ts'
import { type Markup, markup, shownLine, toShownText } from '../markup.ts'

/* The texts of an event: what its agent was asked, and what it has answered. */

export const renderAnswer = (event: EventDetail): Markup | undefined => {
  const { kind, result, state, resultPreview } = event
  if (result !== undefined) return toCard(result === '' ? empty : renderWhole(event, result))
  if (kind === 'webhook' && !isFinal(state))
    return toCard(markup`<p class="soft">No answer yet. It appears here when it arrives.</p>`)
  if (resultPreview === undefined) return undefined
  return toCard(
    markup`${renderText(resultPreview, event.id)}<p class="soft">Only the beginning is still in memory.</p>`,
  )
}

const toCard = (content: Markup): Markup =>
  markup`<section class="card"><h2>Answer</h2>${content}</section>`

const empty = markup`<p class="soft">The answer is empty.</p>`

const renderWhole = ({ id, state }: EventDetail, result: string): Markup => {
  const { text, comments } = parseAnswer(result)
  // The question shows them with their boxes.
  const shown = state === 'waiting' ? [] : comments
  return markup`
    ${text.trim() !== '' && renderMarkdown(toShownText(text).text)}
    ${shown.length > 0 && markup`<ul class="stack">${shown.map(renderComment)}</ul>`}
    <details><summary>As the agent wrote it</summary>${renderText(result, id)}</details>`
}

const renderComment = ({
  path,
  line,
  body,
}: ReturnType<typeof parseAnswer>['comments'][number]): Markup => markup`
  <li class="comment"><p class="soft"><code>${shownLine(path)}</code>${line !== undefined && ` line ${line}`}</p>
    ${renderMarkdown(toShownText(body).text)}</li>`

/** The prompt, or the way to see it; a text that a sender may have written is shown on request only. */
export const renderPrompt = (
  { id, prompt, promptSize }: EventDetail,
  asked: { readonly text: string } | { readonly problem: string } | undefined,
): Markup | undefined => {
  if (asked)
    return markup`<section class="card" id="prompt"><h2>Prompt</h2>${
      'text' in asked ? renderText(asked.text, id) : markup`<p role="alert">${asked.problem}</p>`
    }<p><a href="/ui/events/${id}">Hide the prompt</a></p></section>`
  return prompt === undefined && promptSize === undefined
    ? undefined
    : markup`<p><a href="/ui/events/${id}?prompt=1#prompt">Show the prompt as the agent had it</a></p>`
}

/** A text as it is, and what of it is not shown. HTML drops the first line break in a `pre`, so we add one. */
export const renderText = (whole: string, id: string): Markup => {
  const { text, cut, hidden } = toShownText(whole)
  return markup`<pre dir="auto">\n${text}</pre>${
    cut > 0 &&
    markup`<p class="soft">Cut here: ${cut} of ${whole.length} characters are left out. To see all: <code>doorward events show ${id}</code></p>`
  }${
    hidden > 0 &&
    markup`<p class="soft">Not shown: ${hidden} control or direction character${hidden === 1 ? '' : 's'}.</p>`
  }`
}
