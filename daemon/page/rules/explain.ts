import type { Explain, Explanation, RuleExplanation } from '../../../shared/api/explain.ts'
import { readSample } from '../../../shared/samples/samples.ts'
import { presetSchemes } from '../../../shared/signatures/presets.ts'
import { type Markup, markup, shownLine, toShownText } from '../markup.ts'
import type { View } from '../view.ts'

/** What a delivery would do, and why, without running anything. */
export const explainView: View = {
  path: '/ui/rules/explain',
  show: async ({ api, query }) => {
    const path = query.get('path') ?? ''
    const of = query.get('of') ?? ''
    const explanation = await api.post<Explanation>('/webhooks/explain', {
      path,
      ...toDelivery(of),
    })
    const { rules = [explanation] } = explanation
    return {
      title: 'What a delivery does',
      content: markup`
        <div class="view-head"><h1>What a delivery does</h1><a href="/ui/rules">Rules</a></div>
        <div class="stack">
          <section class="card" aria-label="Delivery">
            <h2>${shownLine(path)}</h2>
            <p>${of.startsWith('event ') ? markup`The newest delivery, <a href="/ui/events/${of.slice(6)}">its event</a>.` : markup`The sample ${shownLine(of || 'of any sender')}.`} Nothing runs.</p>
            ${describeOutcome(explanation).map((words) => markup`<p>${shownLine(words)}</p>`)}
          </section>
          ${rules.map(renderRule)}
        </div>`,
    }
  },
}

/** The payload of a sample, or the event whose payload is still there. */
const toDelivery = (of: string): Omit<Explain, 'path'> => {
  if (of.startsWith('event ')) return { event: of.slice(6) }
  if (of === '') return { payload: { text: 'a sample' } }
  const { sender, event, contentType, body } = readSample(of)
  const header = presetSchemes.find(({ name }) => name === sender)?.event?.header
  return {
    headers: { 'content-type': contentType, ...(header !== undefined && { [header]: event }) },
    payload: body.toString('utf8'),
  }
}

const describeOutcome = (explanation: Explanation): readonly string[] => [
  ...(explanation.handshake === undefined
    ? []
    : [`it is a handshake, which is ${explanation.handshake}`]),
  ...(explanation.ownComment ? ['doorward wrote it itself, so it runs nothing'] : []),
  ...(explanation.duplicateOf
    ? ['it has been here before; the same delivery would not run again']
    : []),
]

const renderRule = (rule: RuleExplanation): Markup => {
  const { matches, on, filter, mention, promptFault, agent, targets, prompt, overBudget } = rule
  const faults = [promptFault, agent.detail, agent.unconfined, mention?.detail, overBudget]
  const { text, cut } = toShownText(prompt)
  return markup`
    <section class="card" aria-label="${rule.rule ?? 'Rule'}">
      <div class="row"><h2>${shownLine(rule.rule ?? 'Its rule')}</h2><span class="state" data-state="${matches ? 'ok' : 'none'}">${matches ? 'would run' : 'would not run'}</span></div>
      ${rule.isPaused && markup`<p>It is paused.</p>`}
      ${faults.map((fault) => markup`${fault !== undefined && markup`<p class="state" data-state="failed">${fault}</p>`}`)}
      ${
        (on !== undefined || filter.length > 0) &&
        markup`<div class="table"><table>
        <thead><tr><th scope="col">Condition</th><th scope="col">Has to be</th><th scope="col">Is</th><th scope="col">Holds</th></tr></thead>
        <tbody>${on && renderCondition('on', on.expected.join(', '), on.actual, on.matches)}${filter.map(
          ({ path, condition, actual, matches: holds }) =>
            renderCondition(path, condition, actual, holds),
        )}</tbody></table></div>`
      }
      <dl class="facts">
        <div><dt>Agent</dt><dd>${shownLine(agent.name)}</dd></div>
        <div><dt>Goes to</dt><dd>${shownLine(targets.map(({ target }) => target).join(', ') || 'nowhere')}</dd></div>
      </dl>
      <details${matches && markup` open`}>
        <summary>Prompt</summary>
        <pre>${text}${cut > 0 && `\n… ${cut} more characters`}</pre>
      </details>
    </section>`
}

const renderCondition = (
  name: string,
  condition: string,
  actual: unknown,
  holds: boolean,
): Markup => markup`
  <tr>
    <th scope="row">${shownLine(name)}</th>
    <td>${shownLine(condition)}</td>
    <td>${actual === null ? markup`<span class="soft">missing</span>` : shownLine(typeof actual === 'string' ? actual : JSON.stringify(actual))}</td>
    <td><span class="state" data-state="${holds ? 'ok' : 'rejected'}">${holds ? 'yes' : 'no'}</span></td>
  </tr>`
