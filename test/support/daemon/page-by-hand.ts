import assert from 'node:assert/strict'
import type { EventLink } from '../../../shared/api/api.ts'
import type { RunningDaemon } from './daemon.ts'
import { send } from '../servers/http.ts'

/** What a browser sends when a person opens an address. */
const typed = {
  'sec-fetch-site': 'none',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
}

/** A view as a browser without scripts gets it, by a link of its own; `show` gets it again. */
export const openOnPage = async (
  { client, url }: Pick<RunningDaemon, 'client' | 'url'>,
  view: string,
): Promise<{ readonly cookie: string; readonly show: () => Promise<string> }> => {
  const link = await client.post<EventLink>('/ui/link', { to: view })
  const opened = await send(link.url, { method: 'GET', headers: typed })
  const cookie = (opened.headers['set-cookie'] ?? []).map((one) => one.split(';', 1)[0]).join('; ')
  const show = async () =>
    (await send(`${url}${view}`, { method: 'GET', headers: { ...typed, cookie } })).text
  return { cookie, show }
}

/** Presses a button of a view as a browser without scripts does; the view before and after. */
export const pressOnPage = async (
  daemon: Pick<RunningDaemon, 'client' | 'url'>,
  view: string,
  action: string,
): Promise<{ readonly before: string; readonly after: string }> => {
  const { url } = daemon
  const { cookie, show } = await openOnPage(daemon, view)
  const before = await show()
  const form = new RegExp(`<form method="post" action="${view}/${action}"[^]*?</form>`).exec(before)
  assert.ok(form, before)
  const fields = [...form[0].matchAll(/name="([\w-]+)" value="([^"]*)"/g)]
  const pressed = await send(`${url}${view}/${action}`, {
    headers: {
      ...typed,
      cookie,
      'sec-fetch-site': 'same-origin',
      origin: url,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(
      fields.map(([, name = '', value = '']) => [name, value] as [string, string]),
    ).toString(),
  })
  assert.equal(pressed.status, 303, pressed.text)
  return { before, after: await show() }
}
