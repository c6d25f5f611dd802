import type { Browser } from 'playwright-core'
import type { EventLink } from '../../../shared/api/api.ts'
import type { RunningDaemon } from '../daemon/daemon.ts'
import { type Look, openWindow, type Window } from './chromium.ts'

/** A wide window in the light, and a narrow one in the dark. */
export const wide: Look = { width: 1280, colorScheme: 'light' }
export const narrow: Look = { width: 360, colorScheme: 'dark' }

/** A link to a view of the page, as `doorward open` asks for it. */
export const linkToView = async (
  { client }: Pick<RunningDaemon, 'client'>,
  to = '/',
): Promise<string> => (await client.post<EventLink>('/ui/link', { to })).url

/** A window of a browser that nobody has used, which shows a view of the page. */
export const openView = async (
  browser: Browser,
  daemon: Pick<RunningDaemon, 'client'>,
  to = '/',
  look = wide,
): Promise<Window> => {
  const window = await openWindow(browser, look)
  await window.page.goto(await linkToView(daemon, to))
  return window
}

/** Whether a page is wider than its window. */
export const isTooWide = async ({ page }: Pick<Window, 'page'>): Promise<boolean> =>
  page.locator('html').evaluate((html) => html.scrollWidth > html.clientWidth)
