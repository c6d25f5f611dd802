/*
 * What doctor finds: one check is one line. The files in `judge/` make checks out of facts and touch
 * nothing; those in `look/` and `online/` find the facts.
 */

export const groups = [
  'system',
  'home',
  'configuration',
  'secrets',
  'ports',
  'daemon',
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
  /** What is so; never a secret, a token or the name of an account. */
  readonly detail: string
  /** What mends it: a command to run or a setting to change. */
  readonly hint?: string
}

/** Makes the checks of one group. */
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

/** How many checks there are of each status. */
export const countByStatus = (checks: readonly Check[]): Record<CheckStatus, number> => {
  const summary = { ok: 0, warning: 0, error: 0, skipped: 0 }
  for (const { status } of checks) summary[status] += 1
  return summary
}

/** What came of something that had so long: its value, or that it took longer. */
type Within<Value> = { readonly value: Value } | 'late'

/**
 * Waits for a promise so many milliseconds at most. What it stands for goes on, as a file system that
 * hangs cannot be interrupted: who gives up on it has to end the process. Throws as the promise does.
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
