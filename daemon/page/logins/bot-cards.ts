import type { BotDetails, BotSummary } from '../../../shared/api/bots.ts'
import { type Markup, markup, shownLine, toShownLine, webLink } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { codeList, findProblems, renderProblem } from './login-cards.ts'

/** The bots of this home; GitHub is asked only about the one that the address names. */
export const renderBots = async (
  request: PageRequest,
  bots: readonly BotSummary[],
): Promise<Markup> => {
  if (bots.length === 0)
    return markup`<p class="empty">No bot yet: a GitHub App of your own, which answers under its own name. <a href="/ui/start">Make one</a></p>`
  const asked = request.query.get('bot')
  const cards = await Promise.all(
    bots.map(async (bot) =>
      renderBot(request, bot, bot.name === asked ? await readDetails(request, bot) : undefined),
    ),
  )
  return markup`<div class="stack">${cards}</div>`
}

const abilities: Readonly<Record<BotSummary['can'], string>> = {
  review: 'read code, comment and check',
  fix: 'read code, comment, check and push branches',
}

const renderBot = (request: PageRequest, bot: BotSummary, details: Markup | undefined): Markup => {
  const { name, login, owner, can, isReachable, hookUrl, createdAt } = bot
  const { path, times } = request
  return markup`
    <section class="card" id="bot-${name}" aria-label="${name}">
      <div class="row"><h3>${shownLine(name)}</h3><span class="soft">bot of ${shownLine(owner)}</span></div>
      ${findProblems(request, login).map(renderProblem)}
      <dl class="facts">
        <div><dt>May</dt><dd>${abilities[can]}</dd></div>
        <div><dt>Deliveries</dt><dd>${isReachable ? shownLine(hookUrl) : 'read from the list that GitHub keeps'}</dd></div>
        <div><dt>Login</dt><dd><code>${login}</code></dd></div>
        <div><dt>Made</dt><dd>${times.at(createdAt)}</dd></div>
      </dl>
      ${details}
      <div class="row">
        ${webLink('Choose its repositories', bot.installUrl)}
        ${webLink('Its settings', bot.settingsUrl)}
        ${details === undefined && markup`<a href="${path}?bot=${encodeURIComponent(name)}#bot-${name}">What GitHub has of it</a>`}
        <details><summary>Remove</summary>${actionForm(request, 'remove-bot', {
          label: 'Remove',
          describe: name,
          kind: 'danger',
          fields: { bot: name },
          content: markup`<p>Its key is deleted here. The App stays at GitHub, where it is deleted under Advanced of its settings.</p><p><label><input type="checkbox" name="sure" value="yes" required> Its rules can then no longer comment</label></p>`,
        })}</details>
      </div>
    </section>`
}

const readDetails = async ({ api }: PageRequest, { name }: BotSummary): Promise<Markup> => {
  const found = await api
    .get<BotDetails>(`/bots/${encodeURIComponent(name)}`)
    .catch((error: unknown) => (error instanceof Error ? error.message : 'GitHub cannot be asked'))
  return typeof found === 'string'
    ? markup`<p role="alert">${shownLine(found)}</p>`
    : renderDetails(found)
}

const renderDetails = ({ permissions, events, installations }: BotDetails): Markup => markup`
  <dl class="facts">
    <div><dt>Permissions at GitHub</dt><dd>${codeList(Object.entries(permissions).map(([key, level]) => `${key}: ${level}`))}</dd></div>
    <div><dt>Events</dt><dd>${events.length === 0 ? 'none' : codeList(events)}</dd></div>
  </dl>
  ${
    installations.length === 0
      ? markup`<p>It is installed nowhere yet: choose its repositories.</p>`
      : markup`<ul class="stack">${installations.map(
          ({ account, isSuspended, isAll, repositories }) => markup`
      <li><strong>${shownLine(account)}</strong>${isSuspended && markup` <span class="state" data-state="failed">suspended</span>`} <span class="soft">${isAll && 'all repositories: '}${shownLine(repositories.join(', '))}</span></li>`,
        )}</ul>`
  }`

export const removeBot: Action = async ({ api }, form) => {
  const bot = form.get('bot') ?? ''
  if (form.get('sure') !== 'yes') return { notice: 'Tick the box first: nothing was done.' }
  const { name, settingsUrl } = await api.delete<BotSummary>(`/bots/${encodeURIComponent(bot)}`)
  return {
    notice: `${name} is forgotten here. Delete the App under Advanced at ${toShownLine(settingsUrl)}`,
  }
}
