import type { FoundAgents, TriedAgent } from '../../../shared/api/setup.ts'
import { isForModel } from '../../../shared/config/rule.ts'
import { type Markup, markup, shownLine, toShownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { type Choices, readChoices, toFields, toStart } from './choices.ts'
import { choice, type Step } from './step.ts'

type Offered = {
  readonly name: string
  readonly what: string
  readonly where: string
  readonly isThere: boolean
}

type AgentStep = Step & { readonly agent: string | undefined }

/** The agents of agents.yaml, and the programs that could become one. */
export const agentStep = async (request: PageRequest, choices: Choices): Promise<AgentStep> => {
  const { programs, agents } = await request.api.get<FoundAgents>('/checks/agents')
  const own = agents.filter(({ kind }) => kind !== 'echo' || agents.length === 1)
  const offered: Offered[] = [
    ...own.map(({ name, kind }) => {
      const program = programs.find((one) => one.kind === kind)
      const isThere = program === undefined || program.path !== undefined
      const where = isThere ? 'in agents.yaml' : `not installed: ${program.install}`
      return { name, what: program?.name ?? kind, where, isThere }
    }),
    ...programs
      .filter(({ kind }) => !agents.some(({ name }) => name === kind))
      .map(({ kind, name, path, install }) => ({
        name: kind,
        what: name,
        where: path ?? `not installed: ${install}`,
        isThere: path !== undefined,
      })),
  ]
  const models = own.filter(({ kind }) => isForModel(kind))
  const [only] = models
  const named = choices.agent ?? (models.length === 1 ? only?.name : undefined)
  const chosen = offered.find(({ name, isThere }) => isThere && name === named)
  const there = offered.filter(({ isThere }) => isThere)
  const missing = offered.filter(({ isThere }) => !isThere)
  return {
    name: 'agent',
    agent: chosen?.name,
    title: 'Your agent',
    isDone: chosen !== undefined,
    content: markup`
      <p class="soft">The program that answers, with your own login. It stays on this machine.</p>
      ${
        there.length === 0
          ? markup`<p>No agent program was found on the PATH of the daemon. Install one, and this page shows it.</p>`
          : renderThere(there, request, choices, chosen?.name)
      }
      ${
        missing.length > 0 &&
        markup`<details><summary>Others, not installed here</summary><ul class="stack">${missing.map(
          ({ what, where }) =>
            markup`<li>${shownLine(what)} <span class="soft">${where}</span></li>`,
        )}</ul></details>`
      }`,
  }
}

const renderThere = (
  there: readonly Offered[],
  request: PageRequest,
  choices: Choices,
  chosen: string | undefined,
): Markup => markup`
  <ul class="stack">${there.map(
    ({ name, what, where }) => markup`
    <li class="row"><strong>${shownLine(name)}</strong> <span class="soft">${shownLine(`${what}, ${where}`)}</span>
      <span class="actions">${
        name === chosen
          ? markup`<span class="state" data-state="done">chosen</span>`
          : choice(toStart(choices, { agent: name }), `Use ${name}`, false)
      }${actionForm(request, 'try', {
        label: 'Try it',
        describe: name,
        fields: toFields({ ...choices, agent: name }),
      })}</span></li>`,
  )}</ul>
  <p class="soft">“Try it” asks for one word, as your account is used later.</p>`

const trialMs = 70_000

/** Asks the agent for one word, and chooses it where it answers. */
export const tryAgent: Action = async ({ api }, form) => {
  const choices = readChoices(form)
  const { agent = '' } = choices
  const tried = await api.post<TriedAgent>('/checks/agents', { agent }, trialMs)
  const seconds = (tried.ms / 1000).toFixed(1)
  return {
    notice: `${agent} works: it answered “${toShownLine(tried.answer)}” in ${seconds} s.`,
    to: toStart(choices),
  }
}
