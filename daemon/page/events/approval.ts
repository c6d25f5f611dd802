import type { EventDetail } from '../../../shared/api/api.ts'
import { parseAnswer } from '../../delivery/format/review.ts'
import { type Markup, markup, shownLine, toShownText } from '../markup.ts'
import { actionForm, type PageRequest } from '../view.ts'

/** The question whether an answer is sent, with the three answers to it; each is bound to what is shown. */
export const renderQuestion = (
  { id, approval, result = '' }: EventDetail,
  request: PageRequest,
  from = 'event',
): Markup => {
  const { comments } = parseAnswer(result)
  const fields = { digest: approval?.digest ?? '', from }
  const path = `/ui/events/${id}`
  const send = {
    label: 'Send',
    kind: 'primary',
    fields: { ...fields, comments: String(comments.length) },
    content:
      comments.length > 0 &&
      markup`
      <fieldset><legend>Comments to send</legend>${comments.map(renderChoice)}</fieldset>`,
  } as const
  const remark = markup`<label for="remark-${id}">Or run the agent again, with your words</label>
    <textarea id="remark-${id}" name="remark" rows="2" maxlength="4000" required></textarea>`
  return markup`
    ${actionForm(request, 'approve', send, path)}
    ${actionForm(request, 'reject', { label: 'Do not send', fields }, path)}
    ${actionForm(request, 'again', { label: 'Run again', fields, content: remark }, path)}
    ${approval && markup`<p class="soft">Nothing is sent unless you answer before ${request.times.at(approval.expiresAt)}.</p>`}`
}

const renderChoice = (
  { path, line, body }: ReturnType<typeof parseAnswer>['comments'][number],
  place: number,
): Markup => markup`
  <p><label class="choice"><input type="checkbox" name="with" value="${place}" checked><span><code>${shownLine(path)}</code>${
    line !== undefined && ` line ${line}`
  }<br><span class="lines" dir="auto">${toShownText(body).text}</span></span></label></p>`
