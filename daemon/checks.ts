import type { Router } from '@koa/router'
import { z } from 'zod'
import type { SourceSummary } from '../shared/api/api.ts'
import { type Check, checkLimitMs, type Checks, checksFor, runGroup } from '../shared/api/checks.ts'
import { enabledRules } from '../shared/schedules/definitions.ts'
import { DoorwardError } from '../shared/errors.ts'
import { readDefaultAccounts } from '../shared/home/default-accounts.ts'
import { checkAgents } from './agents/check.ts'
import type { RunProcess } from './agents/orphans.ts'
import { checkTargets } from './delivery/check.ts'
import { exactRouter } from './http/body.ts'
import { checkLogins, listNeededLogins, reachProviders } from './oauth/check.ts'
import { checkMachines } from './queue/check.ts'
import type { Hooks } from './sender-apis/hooks.ts'
import type { StatusParts } from './status.ts'
import { checkTunnel } from './tunnel/check.ts'
import { createKeyedMutex } from './util/concurrency.ts'
import { createGit } from './workspace/git.ts'

export type ChecksParts = StatusParts & {
  readonly hooks: Hooks
  readonly run: RunProcess
}

const querySchema = z.strictObject({ online: z.enum(['', 'true']).optional() })

/** `POST /checks?online`: what only the daemon can check. One run at a time. */
export const checkRoutes = (parts: ChecksParts): Router => {
  const router = exactRouter()
  const inTurn = createKeyedMutex()
  router.post('/checks', async (ctx) => {
    const { success, data } = querySchema.safeParse({ ...ctx.query })
    if (!success) throw new DoorwardError('request-invalid', 'the query is not empty or online')
    ctx.body = await inTurn('checks', () => runChecks(parts, data.online !== undefined))
  })
  return router
}

/**
 * Checks what this daemon works with: programs and servers of agents, logins, targets, the tunnel. `online`
 * asks them by requests that leave nothing behind. Changes nothing, and ends within the limit.
 */
const runChecks = async (parts: ChecksParts, online: boolean): Promise<Checks> => {
  const { live, home, oauth, intake, tunnel, hooks, startedAt } = parts
  const engine = live.current()
  const { config, env } = engine
  const control = new AbortController()
  const { signal } = control
  const asking = online ? { signal, timeoutMs: 6000 } : undefined
  const clocks: (number | undefined)[] = []
  const limitMs = checkLimitMs(online)
  const run = async (group: Check['group'], check: () => Promise<readonly Check[]>) =>
    runGroup(group, limitMs, check)
  const logins = async () => {
    // `home` reports a file that cannot be used.
    const defaults = await readDefaultAccounts(home).catch(() => ({}))
    const needed = listNeededLogins(config, engine.senders(), defaults)
    const [tokens, problems] = await Promise.all([oauth.tokens(), oauth.problems()])
    const seen = checkLogins({ tokens, problems, needed, gateway: config.gateway, env })
    const names = [...tokens, ...needed].map(({ provider }) => provider)
    const reached = online ? await reachProviders(names, config.gateway, signal) : []
    clocks.push(...reached.map(({ clockAheadMs }) => clockAheadMs))
    return [...seen, ...reached.map(({ check }) => check)]
  }
  const targets = async () => {
    const { checks, clockAheadMs } = await checkTargets(engine, home.root, asking)
    clocks.push(clockAheadMs)
    return checks
  }
  try {
    const found = await Promise.all([
      run('system', async () => checkGit(parts, signal)),
      run('configuration', async () => checkLiveConfig(live)),
      run('machines', async () => checkMachines(config.gateway, intake.queue.machines?.())),
      run('agents', async () => checkAgents(engine, home.root, parts.run, { signal, asking })),
      run('logins', logins),
      run('targets', targets),
      run('sources', () => Promise.resolve(checkSources(parts.sources.list()))),
      run('tunnel', async () => checkTunnel(config, tunnel.status(), asking)),
      run('tunnel', async () => (online ? hooks.check(startedAt, signal) : [])),
    ])
    const clockAheadMs = clocks.find((ms) => ms !== undefined)
    return { checks: found.flat(), ...(clockAheadMs !== undefined && { clockAheadMs }) }
  } finally {
    control.abort()
  }
}

/** Changes of the configuration that a reload could not apply. */
const checkLiveConfig = (live: ChecksParts['live']): Check[] =>
  live
    .problems()
    .filter(({ code }) => code === 'restart-needed' || code === 'config-not-watched')
    .map(({ detail, hint }) => checksFor('configuration').warning('daemon', detail, hint))

/** Whether workspaces have the git that they need, where a rule has one. */
const checkGit = async (
  { live, home, run }: ChecksParts,
  signal: AbortSignal,
): Promise<Check[]> => {
  const { config, env } = live.current()
  if (!enabledRules(config).some(({ workspace }) => workspace)) return []
  const { ok, error } = checksFor('system')
  try {
    const git = createGit(run, env, home.run)
    const { stdout } = await git(['version'], { cwd: home.root, signal, timeoutMs: 2000 })
    return [ok('git', /\d+(\.\d+)+/.exec(stdout.toString())?.[0] ?? 'installed')]
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    return [error('git', thrown.message, thrown.hint)]
  }
}

/** Whether each source brings events, and why not. */
const checkSources = (sources: readonly SourceSummary[]): Check[] => {
  const { ok, warning, error } = checksFor('sources')
  return sources.map(({ kind, how, state, since, problem, webhooks }) => {
    const name = webhooks[0] === undefined ? kind : `${kind} ${webhooks[0]}`
    if (state === 'failed') return error(name, problem?.detail ?? 'failed', problem?.hint)
    if (problem) return warning(name, problem.detail, problem.hint)
    if (state === 'connected') return ok(name, `${how}, since ${since ?? 'now'}`)
    return warning(name, 'not connected yet', 'check the network')
  })
}
