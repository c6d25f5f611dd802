import { type BotDetails, type BotSummary, toBotPath } from '../../../shared/api/bots.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm, readSecret } from '../../terminal/input.ts'
import { tableLines } from '../../terminal/table.ts'
import { toPath } from './create.ts'

/** Prints the bots of this home; asks GitHub nothing. */
export const listBots = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) => client.get<{ bots: BotSummary[] }>('/bots'))
  if (terminal.json) return terminal.printJson(answer)
  if (answer.bots.length === 0)
    return terminal.say('there is no bot yet\nhint: doorward bot create github')
  const rows = answer.bots.map(({ name, owner, can, login, hookUrl, isReachable }) => [
    name,
    owner,
    can,
    login,
    isReachable ? hookUrl : "read from GitHub's list",
  ])
  for (const line of tableLines([['BOT', 'OWNER', 'CAN', 'LOGIN', 'DELIVERIES'], ...rows]))
    terminal.print(line)
}

/** Prints a bot as GitHub has it now. Throws `bot-not-found`, `bot-refused`. */
export const showBot = async (context: Context, [name = '']: readonly string[]): Promise<void> => {
  const { terminal } = context
  const bot = await withDaemon(context, (client) =>
    client.get<BotDetails>(toPath(name), { timeoutMs: 60_000 }),
  )
  if (terminal.json) return terminal.printJson(bot)
  const permissions = Object.entries(bot.permissions).map(([key, level]) => `${key}: ${level}`)
  const rows = [
    ['bot', bot.name],
    ['owner', bot.owner],
    ['login', bot.login],
    ['page', bot.pageUrl],
    ['settings', bot.settingsUrl],
    ['deliveries', bot.isReachable ? bot.hookUrl : "no address: read from GitHub's list"],
    ['permissions', permissions.join(', ')],
    ['events', bot.events.join(', ')],
    ...bot.installations.map(({ account, isSuspended, isAll, repositories }) => [
      'installed',
      `${account}${isSuspended ? ' (suspended)' : ''}: ${isAll ? 'all repositories, ' : ''}${repositories.join(', ')}`,
    ]),
  ]
  for (const line of tableLines(
    rows.map((row) => row.map(toPlainLine)),
    terminal.columns,
  ))
    terminal.print(line)
  if (bot.installations.length === 0)
    terminal.say(`hint: it is installed nowhere: doorward bot install ${toPlainLine(bot.name)}`)
}

type RotateOptions = { readonly key?: true; readonly secret?: true }

/** Throws `usage` unless one of both is named, and `bot-refused` where GitHub does not take the key. */
export const rotateBot = async (
  context: Context,
  [name = '']: readonly string[],
  { key, secret }: RotateOptions,
): Promise<void> => {
  if ((key === undefined) === (secret === undefined))
    throw new DoorwardError('usage', 'say which is replaced: --key or --secret', {
      hint: 'the key is made on the page of the App, under Private keys; --secret does all by itself',
    })
  const example = `doorward bot rotate ${toPlainLine(name)} --key < key.pem`
  const body = key
    ? { privateKey: await readSecret({ name: 'private key', example }) }
    : { secret: true }
  const bot = await withDaemon(context, (client) =>
    client.post<BotSummary>(`${toPath(name)}/rotate`, body, { timeoutMs: 60_000 }),
  )
  const { terminal } = context
  if (terminal.json) return terminal.printJson(bot)
  terminal.print(
    key
      ? `${bot.name} has the new key: delete the old one at ${bot.settingsUrl}`
      : `the deliveries of ${bot.name} have a new secret`,
  )
}

/** Removes a bot here, after a question. */
export const removeBot = async (
  context: Context,
  [name = '']: readonly string[],
  { yes }: { readonly yes?: boolean },
): Promise<void> => {
  const { terminal } = context
  const question = {
    question: `forget the key of ${toPlainLine(name)}? Rules that use it fail from then on`,
    refusal: 'remove forgets the key of a bot, and there is no terminal to ask',
    interrupted: 'nothing was removed',
  }
  if (!yes && !(await confirm(question, terminal))) return terminal.say('nothing was removed')
  const bot = await withDaemon(context, (client) => client.delete<BotSummary>(toPath(name)))
  if (terminal.json) return terminal.printJson(bot)
  terminal.print(`${toPlainLine(bot.name)} is removed here`)
  terminal.say(
    `the entry of ${toBotPath(toPlainLine(bot.name))} stays, and gets nothing now: doorward config edit webhooks`,
  )
  terminal.say(
    `the App is still at GitHub: delete it under Advanced at ${toPlainLine(bot.settingsUrl)}`,
  )
}
