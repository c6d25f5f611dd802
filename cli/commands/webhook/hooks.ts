import {
  describeHookProblem,
  type HookSummary,
  type RemovedHook,
} from '../../../shared/api/hooks.ts'
import type { Config } from '../../../shared/config/load.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { moment } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'
import { writeSource } from './connect-entry.ts'
import { disconnectStripe } from './connect-stripe.ts'

const limitMs = 60_000
const route = '/webhooks/hooks'

/** Prints the hooks that `webhook connect` made, as their senders have them now. */
export const listHooks = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) =>
    client.get<{ hooks: HookSummary[] }>(route, { timeoutMs: limitMs }),
  )
  if (terminal.json) return terminal.printJson(answer)
  if (answer.hooks.length === 0)
    return terminal.say(
      'no webhook is connected by a hook\nhint: doorward webhook connect github OWNER/REPO',
    )
  const now = new Date()
  const rows = answer.hooks.map(({ repository, hookId, state, events, last, path, mode }) => [
    repository,
    String(hookId),
    state,
    events.join(', ') || '-',
    last
      ? `${last.event} ${moment(last.at, now)}: ${mode === 'poll' ? (last.here ? 'read' : 'not read') : last.answer}`
      : '-',
    path,
  ])
  const header = ['REPOSITORY', 'HOOK', 'STATE', 'EVENTS', 'LAST DELIVERY', 'WEBHOOK']
  for (const line of tableLines([header, ...rows])) terminal.print(line)
  for (const hook of answer.hooks) {
    const advice = describeHookProblem(hook)
    if (advice) terminal.say(toPlainLine(`${hook.repository}: ${advice}`))
  }
}

/** Deletes the hook of a webhook at its sender. The entry and its secret stay. */
export const disconnectWebhook = async (
  context: Context,
  [given = '']: readonly string[],
): Promise<void> => {
  const { terminal } = context
  const { config } = await openConfig(context.home)
  const { path, source } = findConnected(given, config)
  if (source?.provider === 'stripe') return disconnectStripe(context, path)
  const removed = await withDaemon(context, async (client) => {
    const query = `?path=${encodeURIComponent(path)}`
    const answer = await client.delete<RemovedHook>(`${route}${query}`, { timeoutMs: limitMs })
    await writeSource(context, undefined, path)
    await client.post('/daemon/reload')
    return answer
  })
  if (terminal.json) return terminal.printJson({ ...removed, path })
  const hook = `hook ${removed.hookId} of ${removed.repository}`
  terminal.print(removed.removed ? `deleted ${hook}` : `${hook} was deleted before`)
  terminal.say(`the webhook ${path} and its secret stay: doorward config edit webhooks`)
}

/** By the path of the webhook, or by the repository. */
const findConnected = (given: string, { webhooks }: Config): Webhook => {
  const isMeant = ({ path, urlPaths, source }: Webhook) =>
    path === given ||
    urlPaths.includes(given) ||
    source?.repository.toLowerCase() === given.toLowerCase()
  const [found, second] = webhooks.filter((webhook) => webhook.source && isMeant(webhook))
  if (found && second)
    throw new DoorwardError('usage', `several webhooks are connected to ${given}`, {
      hint: `name one by its path: ${found.path} or ${second.path}`,
    })
  if (found) return found
  const connected = webhooks.filter(({ source }) => source).map(({ path }) => path)
  throw new DoorwardError(
    'webhook-not-found',
    `no webhook is connected to "${toPlainLine(given).slice(0, 200)}"`,
    {
      hint:
        connected.length > 0
          ? `one of ${connected.join(', ')}`
          : 'doorward webhook hooks lists them',
    },
  )
}
