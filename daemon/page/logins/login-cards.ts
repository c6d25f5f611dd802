import type {
  Logout,
  ProviderSummary,
  StatusProblem,
  TokenSummary,
} from '../../../shared/api/api.ts'
import type { BotSummary } from '../../../shared/api/bots.ts'
import { compareLogins, getProviderName, parseLogin } from '../../../shared/config/name-forms.ts'
import { loginCommand, shortScopes } from '../../../shared/login-words.ts'
import { type Markup, markup, shownLine, toShownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'
import { type OpenLogin, openLogins, readLogin } from './open-login.ts'

/** The providers: first those with a login, each with what is wrong and what fixes it. */
export const renderLogins = async (
  request: PageRequest,
  bots: readonly BotSummary[],
): Promise<Markup> => {
  const { providers } = request.status
  const isBot = new Set(bots.map(({ login }) => login))
  const known = new Set(providers.map(({ provider }) => provider))
  const opened: ProviderSummary[] = openLogins()
    .filter((login) => !known.has(login) && !isBot.has(login))
    .map((provider) => ({ provider, clientKnown: true, status: 'not-logged-in', account: null }))
  const all = [...providers, ...opened].sort(
    (one, other) =>
      Number(one.status === 'not-logged-in') - Number(other.status === 'not-logged-in') ||
      compareLogins(one.provider, other.provider),
  )
  const cards = await Promise.all(
    all.map(async (provider) => {
      const login = await readLogin(request, provider.provider)
      // A new account whose login was left has no card.
      if (opened.includes(provider) && login?.status !== 'pending') return undefined
      return renderCard(request, provider, login)
    }),
  )
  return markup`<div class="stack">${cards.filter((card) => card !== undefined)}</div>`
}

const renderCard = (
  request: PageRequest,
  provider: ProviderSummary,
  login: OpenLogin | undefined,
): Markup => {
  const { provider: name, status } = provider
  const token = request.status.tokens.find((one) => one.provider === name)
  const [state, words] = states[status]
  return markup`
    <section class="card" id="login-${name}" aria-label="${name}">
      <div class="row"><h3>${shownLine(name)}</h3><span class="state" data-state="${state}">${words}</span></div>
      ${findProblems(request, name).map(renderProblem)}
      ${token && renderFacts(token, request)}
      ${login?.content}
      ${login?.status !== 'pending' && renderActions(request, provider, token)}
    </section>`
}

const states: Readonly<Record<ProviderSummary['status'], readonly [string, string]>> = {
  ok: ['ok', 'logged in'],
  expired: ['ok', 'logged in; the token is renewed when it is needed'],
  'needs-login': ['failed', 'a new login is needed'],
  'not-logged-in': ['none', 'not logged in'],
}

export const findProblems = ({ status }: PageRequest, login: string): readonly StatusProblem[] =>
  status.problems.filter(({ about }) => about?.provider === login)

export const renderProblem = ({ detail, hint }: StatusProblem): Markup =>
  markup`<p role="alert">${shownLine(detail)}</p><p><code>${toShownLine(hint)}</code></p>`

export const codeList = (texts: readonly string[]): readonly Markup[] =>
  texts.map((text, place) => markup`${place > 0 && ', '}<code>${toShownLine(text)}</code>`)

const renderFacts = (token: TokenSummary, { times }: PageRequest): Markup => {
  const { account, scopes, missingScopes = [], expiresAt, loginExpiresAt, refreshable } = token
  const renewal = refreshable ? 'renewed automatically' : 'nothing renews it'
  const lines = (texts: readonly string[]) => codeList(shortScopes(texts))
  return markup`
    <dl class="facts">
      <div><dt>Account</dt><dd>${account ? shownLine(account.name) : 'not named by the provider'}</dd></div>
      <div><dt>Token ends</dt><dd>${expiresAt === null ? 'never' : markup`${times.ago(expiresAt)} <span class="soft">${renewal}</span>`}</dd></div>
      ${loginExpiresAt !== undefined && markup`<div><dt>Login ends</dt><dd>${times.at(loginExpiresAt)}</dd></div>`}
      <div><dt>Since</dt><dd>${times.at(token.obtainedAt)}</dd></div>
      <div><dt>Scopes</dt><dd>${scopes.length === 0 ? 'none named' : lines(scopes)}</dd></div>
      ${missingScopes.length > 0 && markup`<div><dt>Not granted</dt><dd>${lines(missingScopes)}</dd></div>`}
    </dl>
    ${missingScopes.length > 0 && markup`<p class="soft">Ask again: <code>${toShownLine(loginCommand(token.provider, [...scopes, ...missingScopes]))}</code></p>`}`
}

const renderActions = (
  request: PageRequest,
  { provider, clientKnown, status }: ProviderSummary,
  token: TokenSummary | undefined,
): Markup => {
  const fields = { provider }
  const has = status !== 'not-logged-in'
  if (!clientKnown && !has)
    return markup`<p class="soft">It needs an OAuth client of your own: <code>doorward oauth login ${provider} --client-id ID</code>${
      provider === 'github' && markup`, or the token of gh: <code>doorward oauth import gh</code>`
    }</p>`
  return markup`
    <div class="row">
      ${
        clientKnown &&
        actionForm(request, 'login', {
          label: has ? 'Log in again' : 'Log in',
          describe: provider,
          fields,
          ...(status === 'needs-login' && { kind: 'primary' as const }),
        })
      }
      ${isAmongSeveral(request, provider) && (token?.default ? markup`<span class="soft">meant by the name ${getProviderName(provider)}</span>` : actionForm(request, 'default', { label: `Use for ${getProviderName(provider)}`, describe: provider, fields }))}
      ${has && clientKnown && !provider.includes('@') && renderOtherAccount(request, provider)}
      ${has && renderLogout(request, provider)}
    </div>`
}

const isAmongSeveral = ({ status }: PageRequest, login: string): boolean => {
  const provider = getProviderName(login)
  const accounts = status.tokens.filter(
    (token) => !token.isBot && getProviderName(token.provider) === provider,
  )
  return accounts.length > 1 && accounts.some((token) => token.provider === login)
}

const renderOtherAccount = (request: PageRequest, provider: string): Markup => markup`
  <details><summary>Another account</summary>${actionForm(request, 'login', {
    label: 'Log in',
    describe: `another account of ${provider}`,
    fields: { provider },
    content: markup`<p><label>Its name here <input name="as" maxlength="34" pattern="[a-z0-9][a-z0-9\\-]*" required autocomplete="off" spellcheck="false"></label> <span class="soft">such as work</span></p>`,
  })}</details>`

const renderLogout = (request: PageRequest, provider: string): Markup => markup`
  <details><summary>Log out</summary>${actionForm(request, 'logout', {
    label: 'Log out',
    describe: provider,
    kind: 'danger',
    fields: { provider },
    content: markup`<p><label><input type="checkbox" name="sure" value="yes" required> Revoke its tokens at the provider and remove them here</label></p>`,
  })}</details>`

export const logOut: Action = async ({ api }, form) => {
  const login = form.get('provider') ?? ''
  if (form.get('sure') !== 'yes') return { notice: 'Tick the box first: nothing was done.' }
  const { revokedAtProvider, detail } = await api.delete<Logout>(
    `/oauth/tokens/${encodeURIComponent(login)}`,
  )
  const notice = revokedAtProvider
    ? `Logged out of ${login}: the provider confirmed the revocation.`
    : `Logged out of ${login} on this machine only. The provider did not confirm a revocation: ${detail ?? 'remove the access in your account there'}`
  return { notice: toShownLine(notice) }
}

export const chooseDefault: Action = async ({ api }, form) => {
  const login = form.get('provider') ?? ''
  const { provider = '', account = null } = parseLogin(login) ?? {}
  await api.post('/oauth/default', { provider, account })
  return { notice: `${provider} now means ${login}.` }
}
