import type { HookSummary } from '../../../../shared/api-hooks.ts'
import type { Client } from '../../../../shared/client/client.ts'
import { toPlainLine } from '../../../../shared/text.ts'
import { moment } from '../../../terminal/format.ts'
import { describeProblem } from '../../webhook/hooks.ts'
import { type Check, checksFor } from '../check.ts'

const { ok, warning, skipped } = checksFor('tunnel')

const limitMs = 18_000

/** The hooks as their senders have them; undefined when the daemon did not say. */
export const fetchHooks = async (
  client: Pick<Client, 'get'>,
): Promise<readonly HookSummary[] | undefined> => {
  try {
    return (
      await client.get<{ hooks: HookSummary[] }>('/webhooks/hooks', {
        signal: AbortSignal.timeout(limitMs),
      })
    ).hooks
  } catch {
    return undefined
  }
}

/** Compares what each sender last delivered, and got as an answer, with what came here. */
export const checkHooks = (hooks: readonly HookSummary[], startedAt: string): Check[] =>
  hooks.map((hook) => checkHook(hook, startedAt))

const checkHook = (hook: HookSummary, startedAt: string): Check => {
  const { provider, repository, path, state, last } = hook
  const name = `hook of ${toPlainLine(repository)}`
  const problem = describeProblem(hook)
  if (problem !== undefined)
    return state === 'unknown'
      ? skipped(name, toPlainLine(problem))
      : warning(name, toPlainLine(problem))
  if (hook.mode === 'poll') return ok(name, `its deliveries are read from ${provider}`)
  if (!last) return ok(name, `${provider} has delivered nothing yet`)
  const delivery = toPlainLine(`${last.event} of ${moment(last.at, new Date())} to ${path}`)
  const answer = toPlainLine(last.answer)
  if (!last.ok)
    return warning(
      name,
      `${provider} could not deliver ${delivery}: ${answer}`,
      last.here
        ? `doorward events --webhook ${path}`
        : 'open the tunnel; then: doorward events missed',
    )
  if (last.here) return ok(name, `${delivery} was answered ${answer}, and came here`)
  // Events are in memory only.
  if (Date.parse(last.at) < Date.parse(startedAt))
    return ok(name, `${delivery}, before the daemon started: ${answer}`)
  return warning(
    name,
    `${provider} delivered ${delivery} and got ${answer}, but nothing came here`,
    'what else answers at server.public_url? point the tunnel at this daemon',
  )
}
