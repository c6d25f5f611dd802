import type { Config } from '../shared/config/load.ts'

/** This path of a webhook, or the first one with a number behind it that no webhook has. */
export const freePath = (path: string, { webhooks }: Config): string => {
  const taken = new Set(webhooks.flatMap((webhook) => [webhook.path, ...webhook.urlPaths]))
  let free = path
  for (let number = 2; taken.has(free); number += 1) free = `${path}-${number}`
  return free
}
