import type { Login, StartedDeviceLogin, StartedLogin } from '../../../shared/api/api.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { BoundedMap } from '../../util/collections.ts'
import { type Markup, markup, shownLine, toShownLine } from '../markup.ts'
import { type Action, actionForm, type PageRequest } from '../view.ts'

/*
 * A login by the page: start -> a link to the provider -> the provider leads back to the callback of the daemon, not
 * to the page -> the view shows the outcome. A form of the page may not lead to another site, and so a link does.
 */

type Started = StartedLogin | StartedDeviceLogin

/** The last login of each name that the page has started: the API names its address only once. */
const started = new BoundedMap<string, Started>(64)

export const startLogin: Action = async ({ api, status }, form) => {
  const name = form.get('provider') ?? ''
  const account = form.get('as')?.trim() ?? ''
  const login = account === '' ? name : `${name}@${account}`
  const isByCode = status.providers.find(({ provider }) => provider === name)?.device === true
  const before = started.get(login)
  // A second one would leave the first waiting behind the page.
  if (before) await api.delete(toPath(before)).catch(() => undefined)
  const now = await api.post<Started>('/oauth/start', {
    provider: login,
    ...(isByCode && { device: true }),
  })
  started.set(login, now)
  return { notice: `Go on at ${login}: the link is here.` }
}

export const cancelLogin: Action = async ({ api }, form) => {
  const login = form.get('provider') ?? ''
  const now = started.get(login)
  if (now) await api.delete(toPath(now))
  started.delete(login)
  return { notice: `The login to ${toShownLine(login)} is cancelled.` }
}

/** Finishes a login whose browser cannot reach this machine. */
export const pasteAddress: Action = async ({ api }, form) => {
  const login = form.get('provider') ?? ''
  const now = started.get(login)
  if (!now) return { notice: `No login to ${toShownLine(login)} waits: log in again.` }
  const url = form.get('url')?.trim() ?? ''
  const { account } = await api.post<Login>(`${toPath(now)}/redirect`, { url })
  return { notice: `Logged in to ${login}${account ? ` as ${toShownLine(account.name)}` : ''}.` }
}

/** The names that the page has started logins for; some have no token. */
export const openLogins = (): readonly string[] => [...started].map(([login]) => login)

export type OpenLogin = { readonly status: Login['status']; readonly content: Markup }

/** Describes what a login needs, or how it has ended; undefined where there is nothing to say. */
export const readLogin = async (
  request: PageRequest,
  login: string,
): Promise<OpenLogin | undefined> => {
  const now = started.get(login)
  if (!now) return undefined
  // The daemon forgets a login some time after its end.
  const found = await request.api.get<Login>(toPath(now)).catch(() => undefined)
  if (!found) return undefined
  const { status } = found
  const content =
    status === 'pending'
      ? renderWaiting(now, login, request)
      : status === 'authorized'
        ? renderRemarks(found)
        : renderFailure(found)
  return { status, content }
}

const toPath = ({ loginId }: Started): string => `/oauth/logins/${encodeURIComponent(loginId)}`

const renderWaiting = (now: Started, login: string, request: PageRequest): Markup => {
  const fields = { provider: login }
  const isByCode = 'userCode' in now
  return markup`
    <div class="ask">
      <p role="status">Waiting for you there, until ${request.times.at('openBefore' in now && now.openBefore !== undefined ? now.openBefore : now.expiresAt)}.</p>
      ${isByCode && markup`<p>Enter the code <strong><code>${toShownLine(now.userCode)}</code></strong></p>`}
      <div class="actions">${renderLink(isByCode ? now.verificationUrl : now.authorizationUrl, login)}${actionForm(
        request,
        'cancel',
        { label: 'Cancel', describe: `the login to ${login}`, fields },
      )}</div>
      ${
        !isByCode &&
        markup`<details><summary>The browser ended at a page that does not load</summary>${actionForm(
          request,
          'paste',
          {
            label: 'Finish',
            describe: `the login to ${login}`,
            fields,
            content: markup`<p><label>Its address <input name="url" maxlength="8192" required autocomplete="off" spellcheck="false"></label></p>`,
          },
        )}</details>`
      }
    </div>`
}

/** The address is the provider's: only https, or this machine, is linked. */
const renderLink = (url: string, login: string): Markup =>
  isSafeToOpen(url)
    ? markup`<a class="button primary" href="${url}" rel="noopener noreferrer" target="_blank">Open the page of ${login}</a>`
    : markup`<p role="alert">The address of ${login} is not https, so no link leads there.</p>`

const renderRemarks = ({ replaced, sameAccountAs }: Login): Markup =>
  markup`${
    replaced &&
    markup`<p class="soft">It has replaced the login as ${shownLine(replaced.name)}.</p>`
  }${
    sameAccountAs !== undefined &&
    markup`<p class="soft">${shownLine(sameAccountAs)} is a login of the same account. For another one, log out in the browser first.</p>`
  }`

const reasons: Partial<Record<Login['status'], string>> = {
  cancelled: 'the login was cancelled',
  expired: 'the login was not finished in time',
}

const renderFailure = ({ status, error }: Login): Markup => {
  const { message, hint } = error ?? { message: reasons[status] ?? status }
  return markup`<p role="alert">The last login failed: ${shownLine(message)}${
    hint !== undefined && markup` <code>${toShownLine(hint)}</code>`
  }</p>`
}
