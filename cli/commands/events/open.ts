import type { EventLink } from '../../../shared/api.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import type { Context } from '../../context.ts'
import { hasBrowser, isRemoteShell, openBrowser } from '../oauth/login-help.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'

export type OpenOptions = { readonly browser: boolean }

/**
 * Opens the page of an event in the browser. Without a browser, and with `--no-browser` or `--json`, it
 * prints a link that works once, for one minute. Throws `event-not-found`.
 */
export const openEvent = async (
  context: Context,
  [id = '']: string[],
  { browser }: OpenOptions,
): Promise<void> => {
  const { terminal } = context
  const link = await withDaemon(context, (client) =>
    client.post<EventLink>(`/events/${encodeURIComponent(id)}/link`),
  )
  if (terminal.json) {
    terminal.printJson(link)
    return
  }
  const canOpen =
    !isRemoteShell(process.env) &&
    hasBrowser(process.platform, process.env) &&
    isSafeToOpen(link.url)
  if (!browser || !canOpen) {
    terminal.print(link.url)
    terminal.say('the link works once, for one minute, on this machine')
    return
  }
  terminal.warn(
    `opening the event in your browser; if that fails, open this page:\n\n  ${link.url}\n`,
  )
  await openBrowser(link.url, () => undefined)
}
