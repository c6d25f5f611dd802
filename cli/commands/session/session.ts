import { rm } from 'node:fs/promises'
import type { SessionList, SessionSummary } from '../../../shared/api/sessions.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { formatLocalTime } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { fromNow, moment } from '../../terminal/format.ts'
import { type Field, printFields, tableLines } from '../../terminal/table.ts'
import { readNote, removeOpened, toNotePath } from './program-stores.ts'

/** Prints the conversations, the last used first. */
export const listSessions = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, async (client) => client.get<SessionList>('/sessions'))
  if (terminal.json) return terminal.printJson(answer)
  if (answer.sessions.length === 0) return terminal.say('there is no conversation')
  const now = new Date()
  const rows = answer.sessions.map((session) => [
    session.key,
    toRuleName(session),
    session.program,
    String(session.turns),
    formatSize(session.bytes),
    session.isRunning ? 'running' : moment(session.usedAt, now),
  ])
  const head = ['KEY', 'RULE', 'PROGRAM', 'EVENTS', 'SIZE', 'LAST USED']
  for (const line of tableLines([head, ...rows])) terminal.print(line)
}

/** Prints one conversation. Throws `session-not-found`. */
export const showSession = async (context: Context, words: readonly string[]): Promise<void> => {
  const { terminal } = context
  const session = await withDaemon(context, async (client) => findSession(client, words))
  if (terminal.json) return terminal.printJson(session)
  const now = new Date()
  const { totals, code } = session
  const fields: Field[] = [
    ['key', session.key],
    ['webhook', session.webhook],
    ...(session.rule === undefined ? [] : [['rule', session.rule] as const]),
    ['agent', `${session.agent} (${session.program})`],
    ['events', `${session.turns}, the last is ${session.event}`],
    ['size', formatSize(session.bytes)],
    ['started', `${formatLocalTime(session.startedAt)} (${fromNow(session.startedAt, now)})`],
    ['last used', `${formatLocalTime(session.usedAt)} (${fromNow(session.usedAt, now)})`],
    ['ends', formatLocalTime(session.expiresAt)],
    ['kept', session.isSealed ? 'in memory, and sealed on the disk' : 'in memory'],
    ...(session.why === undefined ? [] : [['next', `starts over: ${session.why}`] as const]),
    ...(code ? [['code', `${code.repository} at ${code.commit.slice(0, 12)}`] as const] : []),
    ...(totals?.costUsd === undefined
      ? []
      : [['cost in all', `$${totals.costUsd.toFixed(4)}`] as const]),
  ]
  printFields(fields, terminal)
}

/** Removes a conversation, also one of which an event runs, or that is open at the terminal. Throws `session-not-found`. */
export const forgetSession = async (context: Context, words: readonly string[]): Promise<void> => {
  const { terminal, home } = context
  const forgotten = await withDaemon(context, async (client) => {
    const { id, program } = await findSession(client, words)
    const notePath = toNotePath(home.run, id)
    const note = await readNote(notePath)
    if (note) await removeOpened(program, note)
    await rm(notePath, { force: true })
    return client.delete<SessionSummary>(`/sessions/${id}`)
  })
  if (terminal.json) terminal.printJson(forgotten)
  else terminal.print(`forgot ${forgotten.key}: the next event starts a new conversation`)
}

/** The conversation that its id, `KEY` or `RULE KEY` names. Throws `session-not-found`. */
export const findSession = async (
  client: Client,
  words: readonly string[],
): Promise<SessionSummary> => {
  const [key = '', rule] = words.toReversed()
  const { sessions } = await client.get<SessionList>('/sessions')
  const found = sessions.filter(
    (session) =>
      [session.key, session.id].includes(key) &&
      (rule === undefined || [session.rule, session.webhook, toRuleName(session)].includes(rule)),
  )
  const [first] = found
  if (first && found.length === 1) return first
  const rules = found.map((session) => toRuleName(session)).join(', ')
  throw new DoorwardError(
    'session-not-found',
    first ? 'several rules have a conversation with this key' : 'there is no such conversation',
    { hint: first ? `name one of them before the key: ${rules}` : 'doorward session list' },
  )
}

/** The rule, or the webhook that has none. */
const toRuleName = ({ webhook, rule }: SessionSummary): string => rule ?? webhook

const formatSize = (bytes: number): string =>
  bytes >= 1_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${Math.ceil(bytes / 1000)} kB`
