import type { BotSummary } from '../../../shared/api/bots.ts'
import { type Markup, markup } from '../markup.ts'
import type { View } from '../view.ts'
import { removeBot, renderBots } from './bot-cards.ts'
import { chooseDefault, logOut, renderLogins } from './login-cards.ts'
import { cancelLogin, pasteAddress, startLogin } from './open-login.ts'

/** The view shows whose tokens are kept here: the logins to providers, and the bots. */
export const loginsView: View = {
  path: '/ui/logins',
  show: async (request) => {
    const { bots } = await request.api.get<{ bots: readonly BotSummary[] }>('/bots')
    return {
      title: 'Logins and bots',
      content: markup`
        <div class="view-head"><h1>Logins and bots</h1></div>
        <div class="stack">
          ${await section('Logins', renderLogins(request, bots))}
          ${await section('Bots', renderBots(request, bots))}
        </div>`,
    }
  },
  actions: {
    login: startLogin,
    cancel: cancelLogin,
    paste: pasteAddress,
    logout: logOut,
    default: chooseDefault,
    'remove-bot': removeBot,
  },
}

const section = async (title: string, content: Promise<Markup>): Promise<Markup> =>
  markup`<section aria-label="${title}"><h2>${title}</h2>${await content}</section>`
