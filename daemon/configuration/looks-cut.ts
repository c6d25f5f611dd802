import type { Config } from '../../shared/config/load.ts'

/**
 * True when a configuration lacks what a file that is only half written would lack: every webhook, or the
 * secret of one that had one. Taken at once, the first would turn senders away with a 404, after which
 * many never come again, and the second would let anybody in.
 */
export const looksCut = (old: Config, now: Config): boolean => {
  if (now.webhooks.length === 0) return old.webhooks.length > 0
  const closed = new Set(
    old.webhooks.filter(({ secretNames }) => secretNames.length > 0).map(({ path }) => path),
  )
  return now.webhooks.some(({ path, secretNames }) => secretNames.length === 0 && closed.has(path))
}
