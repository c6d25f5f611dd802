import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Check, checksFor, measureClock } from '../../shared/api/checks.ts'
import type { Config } from '../../shared/config/load.ts'
import { enabledRules } from '../../shared/schedules/definitions.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type SentKind } from '../../shared/targets/schema.ts'
import { type Target, toServerKind } from '../../shared/targets/targets.ts'
import { fileTargetWarnings, listFilePaths, targetFaults } from '../../shared/targets/warnings.ts'
import { isFixed } from '../../shared/templates.ts'
import type { Senders } from './deliver.ts'
import type { Asking } from './sender.ts'

const { ok, warning, error, skipped } = checksFor('targets')

/** Faults of targets that can be delivered to. */
const doubts = ['target-not-encrypted', 'target-url-secret']

/** A target that is checked once, however many rules deliver there. */
type Checked = { readonly name: string; readonly kind: Target['kind']; readonly address: string }

type TargetChecks = {
  readonly checks: readonly Check[]
  readonly clockAheadMs?: number | undefined
}

/** Checks the targets of enabled webhooks. With `asking` it asks whether they take our tokens. */
export const checkTargets = async (
  engine: {
    readonly config: Config
    readonly env: NodeJS.ProcessEnv
    readonly senders: () => Senders
  },
  homeFolder: string,
  asking: Asking | undefined,
): Promise<TargetChecks> => {
  const { config, env } = engine
  const targets = listTargets(config)
  if (targets.length === 0)
    return { checks: [skipped('targets', 'no enabled webhook delivers anywhere')] }
  const faults = [
    ...targetFaults(config, env).map(({ code, about, what, hint }) =>
      (doubts.includes(code) ? warning : error)(toServerKind(about.target ?? ''), what, hint),
    ),
    ...(await fileTargetWarnings(config, homeFolder)).map(({ detail, hint }) =>
      error('file', detail, hint),
    ),
    ...(await findClosed(config, homeFolder)),
  ]
  const wrong = new Set(faults.filter(({ status }) => status === 'error').map(({ name }) => name))
  const doubtful = new Set(faults.map(({ name }) => name))
  const senders = engine.senders()
  const found = await Promise.all(
    targets
      .filter(({ name }) => !wrong.has(name))
      .map(async (target) => checkTarget(target, senders, asking)),
  )
  return {
    checks: [
      ...faults,
      ...found
        .map(({ check }) => check)
        .filter(({ name, status }) => status === 'error' || !doubtful.has(name)),
    ],
    clockAheadMs: found.find(({ clockAheadMs }) => clockAheadMs !== undefined)?.clockAheadMs,
  }
}

const listTargets = (config: Config): Checked[] => {
  const { targets } = config.gateway
  const all = enabledRules(config).flatMap((rule) =>
    rule.targets.flatMap((target): Checked[] => {
      const { kind } = target
      if (kind === 'none') return []
      if (kind !== 'discord' && kind !== 'http')
        return [
          { name: toServerKind(kind), kind: toServerKind(kind) as Target['kind'], address: '' },
        ]
      const { address } = target
      return Object.keys(targets[kind])
        .filter((name) => !isFixed(address) || address.source === name)
        .map((name) => ({ name: `${kind}:${name}`, kind, address: name }))
    }),
  )
  return [...new Map(all.map((target) => [target.name, target])).values()]
}

type Found = { readonly check: Check; readonly clockAheadMs?: number | undefined }

const checkTarget = async (
  { name, kind, address }: Checked,
  senders: Senders,
  asking: Asking | undefined,
): Promise<Found> => {
  if (['log', 'notify', 'file'].includes(kind)) return { check: ok(name, 'stays on this machine') }
  if (!asking) return { check: skipped(name, 'only --online asks it') }
  try {
    const response = await senders[kind as SentKind].check?.(address, asking)
    return response
      ? { check: ok(name, 'it takes our token'), clockAheadMs: measureClock(response.headers.date) }
      : { check: ok(name, 'it can be reached; nothing was sent') }
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    if (thrown.code === 'not-logged-in')
      return { check: skipped(name, 'there is no login for it: see logins') }
    return { check: error(name, thrown.message, thrown.hint) }
  }
}

/** File targets that cannot be written, as far as their paths are fixed. */
const findClosed = async (config: Config, homeFolder: string): Promise<Check[]> => {
  const found = await Promise.all(
    listFilePaths(config, homeFolder).map(async ({ text, folder, file = folder }) => {
      const closed = await closedPart(file)
      if (closed === undefined) return []
      const what = `${text} cannot be written: ${closed} is not writable for you`
      return [error('file', what, 'make it writable for you')]
    }),
  )
  return found.flat()
}

/** The existing part of a path that takes no file, if any. */
const closedPart = async (path: string): Promise<string | undefined> => {
  for (let part = path; ; part = dirname(part)) {
    const found = await stat(part).catch(() => undefined)
    if (!found && dirname(part) !== part) continue
    const mode = found?.isDirectory() ? constants.W_OK | constants.X_OK : constants.W_OK
    // A file in the place of a folder takes no file either.
    const isWrong = part !== path && !found?.isDirectory()
    const isOpen = await access(part, mode).then(
      () => true,
      () => false,
    )
    return isOpen && !isWrong ? undefined : part
  }
}
