import { warningsOf } from '../shared/config/warnings.ts'
import type { Config } from '../shared/config/load.ts'
import { version } from '../shared/version.ts'
import type { EventStore } from './events/event-store.ts'
import type { Log } from './log/log.ts'

/** Says in log and events that a daemon serves, and what a person should know of its configuration. */
export const noteStart = (
  { log, events }: { readonly log: Log; readonly events: EventStore },
  { config, env }: { readonly config: Config; readonly env: NodeJS.ProcessEnv },
  url: string,
  how: 'started' | 'restarted',
): void => {
  log.info({ url, version, pid: process.pid, webhooks: config.webhooks.length }, 'listening')
  for (const { code, detail, hint } of warningsOf(config, env)) log.warn({ code, hint }, detail)
  events.add(new Date(), { kind: 'daemon', state: 'done', detail: `daemon ${version} ${how}` })
}
