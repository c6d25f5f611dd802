import { type Markup, markup } from '../markup.ts'
import type { View } from '../view.ts'
import { agentStep, tryAgent } from './agent.ts'
import { botStep, cancelBot, importGh, makeBot } from './bot.ts'
import { type Choices, choicesOf, startPath } from './choices.ts'
import type { Step } from './step.ts'
import { firstEventStep, sendSample } from './first-event.ts'
import { addRule, ruleStep, undoRule } from './rule.ts'

/*
 * The first page of a new user: agent -> bot -> rule -> first event. What is done is read from the configuration and
 * the address each time, so that there is no other state.
 */
export const startView: View = {
  path: startPath,
  show: async (request) => {
    const choices = choicesOf(request)
    const agent = await agentStep(request, choices)
    const bot = await botStep(request, choices)
    // Where there is one only, it need not be chosen.
    const known = { ...choices, ...toChosen({ agent: agent.agent, bot: bot.bot }) }
    const rule = await ruleStep(request, known, { isReady: agent.isDone })
    const event = await firstEventStep(request, known)
    const steps = [agent, bot, rule, event]
    return {
      title: 'Start',
      content: markup`
        <div class="view-head"><h1>Start</h1></div>
        <ol class="steps">${steps.map((step, index) => renderStep(step, index, steps))}</ol>`,
    }
  },
  actions: {
    try: tryAgent,
    bot: makeBot,
    cancel: cancelBot,
    gh: importGh,
    add: addRule,
    undo: undoRule,
    sample: sendSample,
  },
}

const toChosen = (steps: {
  readonly agent: string | undefined
  readonly bot: string | undefined
}): Choices => ({
  ...(steps.agent !== undefined && { agent: steps.agent }),
  ...(steps.bot !== undefined && { bot: steps.bot }),
})

const renderStep = (
  { name, title, isDone, content }: Step,
  index: number,
  steps: readonly Step[],
): Markup => {
  const isNext = !isDone && steps.slice(0, index).every((step) => step.isDone)
  return markup`
    <li class="card" id="step-${name}"${isNext && markup` aria-current="step"`}>
      <div class="row"><h2>${String(index + 1)}. ${title}</h2><span class="state" data-state="${
        isDone ? 'done' : isNext ? 'now' : 'ahead'
      }">${isDone ? 'done' : isNext ? 'next' : 'later'}</span></div>
      ${content}
    </li>`
}
