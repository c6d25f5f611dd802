import { lifetimeMs, refreshTime, validityMs, wantedMs } from './refresh-time.ts'

/*
 * Where a renewal ends the token before it at once, as at GitHub, whoever holds that one is cut off in the
 * middle of its work. So a token that was handed out is left alone for as long as it was asked for.
 */

type Lifetime = Parameters<typeof refreshTime>[0]

/**
 * Until when a token that is handed out now is to work, in milliseconds since 1970: as long as asked, and
 * never past its end. What no token of the provider lives long enough for is no promise but the usual one.
 */
export const toPromise = (
  record: Lifetime,
  minValidityMs: number | undefined,
  now: number,
): number => {
  const wanted = wantedMs(record, minValidityMs)
  const kept = wanted > lifetimeMs(record) ? wantedMs(record, undefined) : wanted
  return now + Math.min(kept, Math.max(0, validityMs(record, now)))
}

/**
 * True where a token that is good for as long as asked is better renewed before it is handed out: its
 * renewal in the background would come too soon, nobody else was promised it, and a new one lasts.
 */
export const isRenewedFirst = (
  record: Lifetime,
  minValidityMs: number | undefined,
  { aheadMs, promisedUntil }: { readonly aheadMs: number; readonly promisedUntil: number },
  now: number,
): boolean => {
  // First, as it is so for whoever reads again and again.
  if (promisedUntil > now) return false
  const plannedAt = refreshTime(record, aheadMs, 1)
  if (plannedAt === undefined) return false
  const wanted = wantedMs(record, minValidityMs)
  return now + wanted > plannedAt && wanted <= plannedAt - Date.parse(record.obtainedAt)
}

/** The latest promise that each provider's token was handed out with, until a new token takes its place. */
export const createPromises = () => {
  const latest = new Map<string, number>()
  const listeners = new Set<(provider: string, until: number) => void>()
  /** In milliseconds since 1970; 0 where nobody was given the token. */
  const untilOf = (provider: string): number => latest.get(provider) ?? 0
  return {
    untilOf,
    note: (provider: string, until: number): void => {
      if (until <= untilOf(provider)) return
      latest.set(provider, until)
      for (const listener of listeners) listener(provider, until)
    },
    forget: (provider: string): void => void latest.delete(provider),
    entries: () => [...latest],
    /** Calls back for each promise from now on, until the returned function is called. */
    follow: (listener: (provider: string, until: number) => void): (() => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export type Promises = ReturnType<typeof createPromises>
