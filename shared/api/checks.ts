import { z } from 'zod'
import { errorName } from '../errors.ts'
import { withDeadline } from '../deadline.ts'

/*
 * The checks of `doorward doctor`. The daemon makes those of its own parts, and the command those of the
 * machine and of the files.
 */

export const checkGroups = [
  'system',
  'home',
  'configuration',
  'secrets',
  'ports',
  'daemon',
  'machines',
  'agents',
  'logins',
  'targets',
  'tray',
  'autostart',
  'tunnel',
  'sources',
] as const
export type Group = (typeof checkGroups)[number]

/** One line of doctor. `skipped` was not checked; its detail says why. */
const checkSchema = z.strictObject({
  group: z.enum(checkGroups),
  name: z.string(),
  status: z.enum(['ok', 'warning', 'error', 'skipped']),
  /** Never contains a secret, a token or the name of an account. */
  detail: z.string(),
  /** The fix: a command to run or a setting to change. */
  hint: z.string().optional(),
})
export type Check = z.infer<typeof checkSchema>
export type CheckStatus = Check['status']

/** Response of `POST /checks`. */
export const checksSchema = z.strictObject({
  checks: z.array(checkSchema),
  /** How far the clock is ahead of a server that was asked. */
  clockAheadMs: z.int().optional(),
})
export type Checks = z.infer<typeof checksSchema>

/** How far our clock is ahead of the `Date` of a response. */
export const measureClock = (date: string | null | undefined): number | undefined => {
  const at = Date.parse(date ?? '')
  // Half a second off, as the header has whole seconds.
  return Number.isNaN(at) ? undefined : Date.now() - at - 500
}

/** Milliseconds after which the daemon ends its checks. */
export const checkLimitMs = (online: boolean): number => (online ? 20_000 : 5000)

/** Functions that make checks of one group. */
export const checksFor = (group: Group) => {
  const made =
    (status: CheckStatus) =>
    (name: string, detail: string, hint?: string): Check => ({
      group,
      name,
      status,
      detail,
      ...(hint === undefined ? {} : { hint }),
    })
  return {
    ok: made('ok'),
    warning: made('warning'),
    error: made('error'),
    skipped: made('skipped'),
  }
}

/** The checks of one group; a failure, or no result within the limit, becomes a check of its own. */
export const runGroup = async (
  group: Group,
  limitMs: number,
  run: () => Promise<readonly Check[]>,
): Promise<readonly Check[]> => {
  const { error } = checksFor(group)
  try {
    const found = await within(limitMs, run())
    return found === 'late' ? [error(group, 'the check timed out')] : found.value
  } catch (thrown) {
    return [error(group, `the check failed (${errorName(thrown)})`)]
  }
}

type Within<Value> = { readonly value: Value } | 'late'

/**
 * Waits for a promise at most `ms` milliseconds. The work itself goes on: a file system that hangs cannot be
 * interrupted. Throws as the promise does.
 */
export const within = async <Value>(ms: number, promise: Promise<Value>): Promise<Within<Value>> =>
  withDeadline(
    ms,
    promise.then((value) => ({ value })),
    () => 'late' as const,
  )
