import { hostname, userInfo } from 'node:os'
import {
  type BotCreation,
  type BotDetails,
  type BotSummary,
  type CreateBot,
  toBotPath,
} from '../../../shared/api/bots.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { holdInterrupt, pause, showWaiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { writeBotEntry } from '../../../shared/recipes/bot-entry.ts'
import { hasBrowser, isRemoteShell, openBrowser, tunnelCommand } from '../oauth/login-help.ts'

type BrowserOptions = { readonly browser: boolean }
type CreateOptions = Omit<CreateBot, 'provider'> & BrowserOptions

/** How often GitHub is asked whether the bot is installed. */
const pollMs = 3000
/** A person who goes away installs it later: `bot install`. */
const maxWaitMs = 10 * 60_000

/**
 * Makes a bot: opens the page with the button, waits until GitHub has made the App, then until it is installed
 * somewhere. `--json` prints a line for each: the page, the bot, its repositories.
 */
export const createBot = async (
  context: Context,
  _words: readonly string[],
  { browser, ...options }: CreateOptions,
): Promise<void> => {
  const { terminal } = context
  await withDaemon(context, async (client) => {
    const { signal, letGo } = holdInterrupt()
    try {
      const request: CreateBot = { provider: 'github', ...options }
      const started = await client.post<BotCreation>('/bots', request)
      await showPage(started.url ?? '', 'make the bot', { browser }, terminal)
      const bot = await untilMade(client, started.id, terminal, signal)
      if (await writeBotEntry(context.home, bot)) await client.post('/daemon/reload')
      if (terminal.json) terminal.printJsonLine(bot)
      else tellMade(bot, terminal)
      await waitForRepositories(client, bot, terminal, signal)
    } finally {
      letGo()
    }
  })
}

/** Opens the page that chooses repositories, and waits until others are chosen than before. */
export const installBot = async (
  context: Context,
  [name = '']: readonly string[],
  options: BrowserOptions,
): Promise<void> => {
  const { terminal } = context
  await withDaemon(context, async (client) => {
    const { signal, letGo } = holdInterrupt()
    try {
      const bot = await client.get<BotDetails>(toPath(name), { timeoutMs: 60_000 })
      await showPage(bot.installUrl, 'choose its repositories', options, terminal)
      await waitForRepositories(client, bot, terminal, signal, listRepositories(bot))
    } finally {
      letGo()
    }
  })
}

export const toPath = (name: string): string => `/bots/${encodeURIComponent(name)}`

export const listRepositories = ({ installations }: BotDetails): string[] =>
  installations.flatMap(({ repositories }) => repositories)

const showPage = async (
  url: string,
  what: string,
  { browser }: BrowserOptions,
  terminal: Terminal,
): Promise<void> => {
  const isRemote = isRemoteShell(process.env)
  const opens =
    browser && !isRemote && hasBrowser(process.platform, process.env) && isSafeToOpen(url)
  if (terminal.json) terminal.printJsonLine({ url })
  else
    terminal.warn(
      `${opens ? `opening your browser to ${what}; if that fails, open this page:` : `open this page to ${what}:`}\n\n  ${toPlainLine(url)}\n`,
    )
  const { hostname: host, port } = new URL(url)
  if (isRemote && host === '127.0.0.1')
    terminal.say(
      `your browser is on another machine; first run this there:\n\n  ${tunnelCommand(port, process.env, { user: userInfo().username, hostname: hostname() })}\n`,
    )
  if (opens)
    await openBrowser(url, () =>
      terminal.say('no browser could be opened here: open the page yourself'),
    )
}

const untilMade = async (
  client: Client,
  id: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<BotSummary> => {
  const path = `/bots/creations/${encodeURIComponent(id)}`
  const waiting = await showWaiting('waiting for you at github', terminal, {
    signal,
    interrupt: 'cancels',
  })
  try {
    for (;;) {
      const now = await client.get<BotCreation>(`${path}?wait=30`, { timeoutMs: 60_000, signal })
      if (now.bot) return now.bot
      if (now.status !== 'pending') throw toFailure(now)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    await client.delete(path, { timeoutMs: 3000 }).catch(() => undefined)
    throw new DoorwardError('interrupted', 'no bot was made here')
  } finally {
    waiting.stop()
  }
}

const toFailure = ({ error }: BotCreation): DoorwardError =>
  error
    ? new DoorwardError(error.code as ErrorCode, error.message, { hint: error.hint })
    : new DoorwardError('login-cancelled', 'the bot was cancelled', {
        hint: 'doorward bot create github',
      })

const tellMade = ({ name, login, owner, hookUrl, isReachable }: BotSummary, terminal: Terminal) => {
  terminal.print(
    `made the bot ${toPlainLine(name)} of ${toPlainLine(owner)}: its login is ${toPlainLine(login)}`,
  )
  terminal.say(`its webhook is ${toPlainLine(toBotPath(name))}, which runs nothing yet`)
  terminal.say(
    isReachable
      ? `deliveries come to ${toPlainLine(hookUrl)}`
      : "this machine has no address: deliveries are read from GitHub's list",
  )
}

/** Prints the repositories once there are others than before; the rest is said without an error. */
const waitForRepositories = async (
  client: Client,
  { name, installUrl }: Pick<BotSummary, 'name' | 'installUrl'>,
  terminal: Terminal,
  signal: AbortSignal,
  before: readonly string[] = [],
): Promise<void> => {
  const waiting = await showWaiting('waiting until it is installed', terminal, {
    signal,
    interrupt: 'goes on without',
  })
  const until = Date.now() + maxWaitMs
  try {
    while (Date.now() < until) {
      const bot = await client.get<BotDetails>(toPath(name), { timeoutMs: 60_000, signal })
      const repositories = listRepositories(bot)
      if (
        repositories.some((one) => !before.includes(one)) ||
        before.length > repositories.length
      ) {
        waiting.stop()
        if (terminal.json) return terminal.printJsonLine({ name, repositories })
        return terminal.print(`installed in ${repositories.map(toPlainLine).join(', ')}`)
      }
      await pause(pollMs, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    waiting.stop()
  }
  terminal.say(
    `it is not installed yet: choose its repositories at ${toPlainLine(installUrl)}, or: doorward bot install ${toPlainLine(name)}`,
  )
}
