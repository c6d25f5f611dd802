import type { BotCreation, BotSummary } from '../../../shared/api/bots.ts'
import type { ImportedLogin } from '../../../shared/api/api.ts'
import type { FoundAgents } from '../../../shared/api/setup.ts'
import { type Markup, markup, shownLine, toShownLine, webLink } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { type Choices, readChoices, toFields, toStart } from './choices.ts'
import { choice, type Step } from './step.ts'

/** What is chosen in place of a bot. */
export const none = 'none'

type BotStep = Step & { readonly bot: string | undefined }

/** A GitHub App of one's own, the login of gh, or later. */
export const botStep = async (request: PageRequest, choices: Choices): Promise<BotStep> => {
  const { api, status } = request
  const { bots } = await api.get<{ bots: readonly BotSummary[] }>('/bots')
  const making = await findCreation(request, choices)
  const login = status.tokens.find(({ provider }) => provider === 'github')
  const name = making?.bot?.name ?? choices.bot
  const bot = bots.find((one) => one.name === name) ?? (bots.length === 1 ? bots[0] : undefined)
  const isLater = choices.bot === none
  const { gh } = await api.get<FoundAgents>('/checks/agents')
  return {
    name: 'bot',
    bot: isLater ? none : bot?.name,
    title: 'Your bot',
    isDone: isLater || bot !== undefined || login !== undefined,
    content: markup`
      <p class="soft">A GitHub App of your own: it comments under its own name, with tokens for one repository and one step. Its key stays here.</p>
      ${
        bots.length > 0 &&
        markup`<ul class="stack">${bots.map((one) => renderBot(one, one === bot, bots.length > 1, choices))}</ul>`
      }
      ${login && markup`<p>Logged in to GitHub as ${shownLine(login.account?.name ?? 'github')}.</p>`}
      ${making && renderMaking(making, request, choices)}
      ${making?.status !== 'pending' && renderWays(request, choices, { hasBot: bots.length > 0, gh: gh && !login })}
      ${
        !isLater && bots.length === 0
          ? markup`<p><a href="${toStart(choices, { bot: none, making: undefined })}">Later, or not at GitHub</a></p>`
          : isLater &&
            markup`<p class="soft">Left for later. <a href="${toStart(choices, { bot: undefined })}">Make one now</a></p>`
      }`,
  }
}

const findCreation = async (
  { api }: PageRequest,
  { making }: Choices,
): Promise<BotCreation | undefined> => {
  if (making === undefined) return undefined
  // After a restart nothing is known of it.
  return api
    .get<BotCreation>(`/bots/creations/${encodeURIComponent(making)}`)
    .catch(() => undefined)
}

const renderBot = (
  { name, owner, installUrl, isReachable }: BotSummary,
  isChosen: boolean,
  isOneOfSeveral: boolean,
  choices: Choices,
): Markup => markup`
  <li class="row"><strong>${shownLine(name)}</strong> <span class="soft">of ${shownLine(owner)}; ${
    isReachable ? 'GitHub sends its deliveries here' : 'its deliveries are read from GitHub'
  }</span> ${webLink('Choose its repositories', installUrl)} ${
    isOneOfSeveral &&
    (isChosen
      ? markup`<span class="state" data-state="done">chosen</span>`
      : choice(toStart(choices, { bot: name }), `Use ${name}`, false))
  }</li>`

const renderMaking = (
  { status, url, error }: BotCreation,
  request: PageRequest,
  choices: Choices,
): Markup => {
  if (status === 'created') return markup`<p role="status">The bot is made.</p>`
  if (status !== 'pending')
    return markup`<p role="alert">${toShownLine(error?.message ?? `The bot was ${status}.`)}</p>`
  return markup`
    <p role="status">Waiting for you at GitHub.</p>
    <div class="actions">${
      url !== undefined &&
      isLoopback(url) &&
      markup`<a class="button primary" href="${url}" target="_blank" rel="noopener">Open the page with the button</a>`
    }${actionForm(request, 'cancel', { label: 'Cancel', describe: 'making the bot', fields: toFields(choices) })}</div>`
}

/** The page with the button is on this machine. */
const isLoopback = (url: string): boolean => /^http:\/\/127\.0\.0\.1:\d+\/bot\/[\w-]+$/.test(url)

type Ways = { readonly hasBot: boolean; readonly gh: boolean }

const renderWays = (request: PageRequest, choices: Choices, { hasBot, gh }: Ways): Markup => {
  const form = actionForm(request, 'bot', {
    label: 'Make a bot at GitHub',
    fields: toFields(choices),
    content: markup`
      <p><label>Organization <input name="org" maxlength="39" autocomplete="off"></label> <span class="soft">empty: your own account</span></p>
      <p><label>It may <select name="can"><option value="review">read code, comment and check</option><option value="fix">also push branches</option></select></label></p>`,
    ...(!hasBot && { kind: 'primary' as const }),
  })
  const login = actionForm(request, 'gh', {
    label: 'Use the login of gh',
    describe: 'copies the token of the GitHub CLI to doorward',
    fields: toFields(choices),
  })
  const own = hasBot ? markup`<details><summary>Make another bot</summary>${form}</details>` : form
  return markup`${own}${gh && markup`<p class="soft">Or without a bot, as yourself:</p>${login}`}`
}

export const makeBot: Action = async ({ api }, form) => {
  const org = form.get('org')?.trim() ?? ''
  const can = form.get('can') === 'fix' ? 'fix' : 'review'
  const made = await api.post<BotCreation>('/bots', {
    provider: 'github',
    can,
    ...(org !== '' && { org }),
  })
  const to = toStart(readChoices(form), { making: made.id, bot: undefined })
  return { notice: 'Open the page with the button: it works once.', to }
}

export const cancelBot: Action = async ({ api }, form) => {
  const choices = readChoices(form)
  await api.delete(`/bots/creations/${encodeURIComponent(choices.making ?? '')}`)
  return { notice: 'No bot is made.', to: toStart(choices, { making: undefined }) }
}

export const importGh: Action = async ({ api }, form) => {
  const { account } = await api.post<ImportedLogin>('/oauth/import/gh', {}, 70_000)
  const notice = `Logged in to GitHub as ${toShownLine(account.name)}, with the token of gh.`
  return { notice, to: toStart(readChoices(form)) }
}
