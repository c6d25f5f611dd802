import type { FoundAgents, OfferedRecipe } from '../../../shared/api/setup.ts'
import { isRepository } from '../../../shared/config/name-forms.ts'
import { quoteForShell } from '../../../shared/home/home.ts'
import type { AddedRecipe } from '../../../shared/recipes/add-recipe.ts'
import { toSchedulePath } from '../../../shared/schedules/schedule.ts'
import { type Markup, markup, shownLine, toShownLine, toShownText } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { none } from './bot.ts'
import { type Choices, readChoices, startPath, toFields, toStart } from './choices.ts'
import { choice, type Step } from './step.ts'

/** One of the recipes, read before it is written, and taken back as it was written. */
export const ruleStep = async (
  request: PageRequest,
  choices: Choices,
  { isReady }: { readonly isReady: boolean },
): Promise<Step> => {
  const { recipes } = await request.api.get<{ recipes: readonly OfferedRecipe[] }>(
    '/webhooks/recipes',
  )
  const { path } = choices
  const isWritten = path !== undefined && (await isServed(request, choices))
  const own = isWritten ? [] : await findOwnRules(request)
  const recipe = recipes.find(({ name }) => name === choices.recipe)
  return {
    name: 'rule',
    title: 'Your first rule',
    isDone: isWritten || own.length > 0,
    content: isWritten
      ? renderWritten(request, choices, path)
      : !isReady
        ? markup`${own.length > 0 && renderOwn(own)}<p class="soft">First choose an agent.</p>`
        : markup`
          ${own.length > 0 && renderOwn(own)}
          <p class="soft">It begins with dry_run: answers are shown to you, and not sent. A day may cost two dollars.</p>
          <ul class="stack">${recipes.map(
            ({ name, title }) =>
              markup`<li>${choice(toStart(choices, { recipe: name, path: undefined, rule: undefined }), name, name === recipe?.name)} <span class="soft">${title}</span></li>`,
          )}</ul>
          ${recipe && (await renderRecipe(recipe, request, choices))}`,
  }
}

/** The paths of webhooks and schedules that run an agent; the one that comes with doorward runs `echo`. */
const findOwnRules = async ({ api, status }: PageRequest): Promise<readonly string[]> => {
  const { agents } = await api.get<FoundAgents>('/checks/agents')
  const real = new Set(agents.filter(({ kind }) => kind !== 'echo').map(({ name }) => name))
  const webhooks = status.webhooks.filter(({ agent, rules = [{ agent }] }) =>
    rules.some((rule) => real.has(rule.agent)),
  )
  const schedules = (status.schedules ?? []).filter(({ agent }) => real.has(agent))
  return [...webhooks.map(({ path }) => path), ...schedules.map(({ name }) => toSchedulePath(name))]
}

const renderOwn = (paths: readonly string[]): Markup =>
  markup`<p>There are rules already: ${shownLine(paths.join(', '))}. <a href="/ui/rules">Show them</a></p>`

const isServed = async (
  { api, status }: PageRequest,
  { path, rule }: Choices,
): Promise<boolean> => {
  const webhook = status.webhooks.find((one) => one.path === path)
  if (path?.startsWith('schedule:')) {
    const { schedules } = await api.get<{ schedules: readonly { name: string }[] }>('/schedules')
    return schedules.some(({ name }) => path === `schedule:${name}`)
  }
  if (!webhook) return false
  return rule === undefined || (webhook.rules ?? []).some(({ name }) => name === rule)
}

const renderWritten = (request: PageRequest, choices: Choices, path: string): Markup => markup`
  <p>${shownLine(choices.rule === undefined ? path : `${choices.rule} of ${path}`)} is written, with dry_run. After the first day: look at its answers, then take the line away.</p>
  ${renderConnect(request, choices, path)}
  <div class="row">
    <a href="${toStart(choices, { path: undefined, rule: undefined, since: undefined, recipe: undefined })}">Add another rule</a>
    <details><summary>Undo</summary>${actionForm(request, 'undo', {
      label: 'Remove this rule',
      describe: path,
      kind: 'danger',
      fields: toFields(choices),
      content: markup`<p>Only this rule is removed. Agents, bots and secrets stay.</p>`,
    })}</details>
  </div>`

/** The command that makes a hook at GitHub, which a bot does not need. */
const renderConnect = (
  { status }: PageRequest,
  { recipe = '', bot = none, repo = '' }: Choices,
  path: string,
): Markup | undefined => {
  if (bot !== none || !/^(github|ci)-/.test(recipe)) return undefined
  const repository = isRepository(repo) ? repo : 'OWNER/REPO'
  const poll = status.publicUrl === undefined ? ' --poll' : ''
  const command = `doorward webhook connect github ${repository} --path ${quoteForShell(path)}${poll}`
  return markup`<p>Now connect its hook at GitHub, in a terminal:</p><pre tabindex="0" aria-label="The command"><code>${toShownLine(command)}</code></pre>`
}

const renderRecipe = async (
  { name, fields }: OfferedRecipe,
  request: PageRequest,
  choices: Choices,
): Promise<Markup> => {
  const plain = fields.filter(({ env }) => env === undefined)
  const secrets = fields.filter(({ env }) => env !== undefined)
  const valueOf = (field: string) =>
    new URLSearchParams(toStart(choices).split('?')[1]).get(field) ?? ''
  const missing = plain.filter((field) => field.isNeeded && valueOf(field.name) === '')
  const hidden = Object.entries({ ...choices, recipe: name }).filter(
    ([key]) => !plain.some((field) => field.name === key),
  )
  const ask =
    plain.length > 0 &&
    markup`<form method="get" action="${startPath}">${hidden.map(
      ([key, value]) => markup`<input type="hidden" name="${key}" value="${value}">`,
    )}${plain.map(
      (field) =>
        markup`<p><label>${field.label} <input name="${field.name}" value="${valueOf(field.name)}" maxlength="300" autocomplete="off" spellcheck="false"${field.isNeeded && markup` required`}></label> <span class="soft">${field.help}</span></p>`,
    )}<button>Show the rule</button></form>`
  if (missing.length > 0) return markup`<h3>${name}</h3>${ask}`
  const preview = await readPreview(request, choices, name)
  if ('error' in preview) return markup`<h3>${name}</h3>${ask}<p role="alert">${preview.error}</p>`
  const keys = secrets.map((field) =>
    field.isSet
      ? markup`<p class="soft">${field.label}: ${field.env ?? ''} is set in .env.</p>`
      : markup`<p><label>${field.label} <input type="password" name="${field.name}" maxlength="4096" autocomplete="off"${field.isNeeded && markup` required`}></label> <span class="soft">${field.help}; kept in .env as ${field.env ?? ''}</span></p>`,
  )
  return markup`
    <h3>${name}</h3>
    ${ask}
    <p class="soft">This goes into ${preview.file}, for the agent ${shownLine(preview.agent)}:</p>
    <pre tabindex="0" aria-label="The rule"><code>${toShownText(preview.text).text}</code></pre>
    ${actionForm(request, 'add', {
      label: 'Write this rule',
      kind: 'primary',
      fields: toFields({ ...choices, recipe: name }),
      content: markup`${keys}`,
    })}`
}

const readPreview = async (
  { api }: PageRequest,
  choices: Choices,
  recipe: string,
): Promise<AddedRecipe | { readonly error: string }> =>
  api
    .post<AddedRecipe>('/webhooks', { ...toBody(choices, recipe), print: true })
    .catch((error: unknown) => {
      const message = error instanceof Error ? error.message : 'it cannot be shown'
      return { error: toShownLine(message) }
    })

const toBody = ({ agent = '', bot, repo, folder, from }: Choices, recipe: string) => ({
  recipe,
  agent,
  ...(bot !== undefined && { bot: bot === none ? null : bot }),
  ...(repo !== undefined && { repo }),
  ...(folder !== undefined && { folder }),
  ...(from !== undefined && { from }),
})

export const addRule: Action = async ({ api }, form) => {
  const choices = readChoices(form)
  const secrets = ['secret', 'appToken', 'botToken'].flatMap((name) => {
    const value = form.get(name)?.trim() ?? ''
    return value === '' ? [] : [[name, value]]
  })
  const since = new Date().toISOString()
  const { path, rule, file, note } = await api.post<AddedRecipe>('/webhooks', {
    ...toBody(choices, choices.recipe ?? ''),
    ...Object.fromEntries(secrets),
  })
  return {
    notice: `The rule is in ${file}.${note === undefined ? '' : ` The agent ${note}.`}`,
    to: toStart(choices, { path, rule, since }),
  }
}

export const undoRule: Action = async ({ api }, form) => {
  const choices = readChoices(form)
  const { path = '', rule } = choices
  const query = new URLSearchParams({ path, ...(rule !== undefined && { rule }) })
  await api.delete(`/webhooks?${query.toString()}`)
  const to = toStart(choices, { path: undefined, rule: undefined, since: undefined })
  return { notice: 'The rule is removed.', to }
}
