import type { EventLink } from '../../shared/api/api.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import type { Context } from '../context.ts'
import { withDaemon } from '../daemon-client/ensure.ts'
import { hasBrowser, isRemoteShell, openBrowser } from './oauth/login-help.ts'

export type OpenOptions = { readonly browser: boolean }

/** Opens the page of doorward in the browser, or one view of it. */
export const openPage = async (
  context: Context,
  [view]: (string | undefined)[],
  options: OpenOptions,
): Promise<void> => {
  const to = view === undefined ? '/' : `/ui/${view}`
  const link = await withDaemon(context, (client) => client.post<EventLink>('/ui/link', { to }))
  return openLink(context, link, options)
}

/**
 * Opens a link to the page that works once. Without a browser, and with `--no-browser` or `--json`, it prints the
 * link.
 */
export const openLink = async (
  { terminal }: Context,
  link: EventLink,
  { browser }: OpenOptions,
): Promise<void> => {
  if (terminal.json) return terminal.printJson(link)
  const canOpen =
    !isRemoteShell(process.env) &&
    hasBrowser(process.platform, process.env) &&
    isSafeToOpen(link.url)
  if (!browser || !canOpen) {
    terminal.print(link.url)
    terminal.say('the link works once, for five minutes, on this machine')
    const { port } = new URL(link.url)
    if (isRemoteShell(process.env))
      terminal.say(`from your own machine, first: ssh -L ${port}:127.0.0.1:${port} <this machine>`)
    return
  }
  terminal.warn(`opening your browser; if that fails, open this page:\n\n  ${link.url}\n`)
  await openBrowser(link.url, () => undefined)
}
