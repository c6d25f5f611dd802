/*
 * One check is one line of doctor. In each file of `checks/`, `collectX` finds facts and changes nothing,
 * and the pure function `checkX` turns them into checks.
 */

export const groups = [
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
] as const
export type Group = (typeof groups)[number]

/** `skipped` was not checked; its detail says why. */
export type CheckStatus = 'ok' | 'warning' | 'error' | 'skipped'

export type Check = {
  readonly group: Group
  readonly name: string
  readonly status: CheckStatus
  /** Never contains a secret, a token or the name of an account. */
  readonly detail: string
  /** The fix: a command to run or a setting to change. */
  readonly hint?: string
}

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

/** Counts checks by status. */
export const countByStatus = (checks: readonly Check[]): Record<CheckStatus, number> => {
  const summary = { ok: 0, warning: 0, error: 0, skipped: 0 }
  for (const { status } of checks) summary[status] += 1
  return summary
}

type Within<Value> = { readonly value: Value } | 'late'

/**
 * Waits for a promise at most `ms` milliseconds. The work itself continues, as a file system that hangs
 * cannot be interrupted: the process must exit explicitly. Throws as the promise does.
 */
export const within = async <Value>(
  ms: number,
  promise: Promise<Value>,
): Promise<Within<Value>> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), ms)
  })
  try {
    return await Promise.race([promise.then((value) => ({ value })), late])
  } finally {
    clearTimeout(timer)
  }
}
