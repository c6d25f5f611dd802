import type { Config } from '../shared/load-config.ts'
import { type ReadyWebhook, webhooksByPath } from './webhook/ready-webhook.ts'
import type { RunEvent } from './webhook/run-event.ts'

/**
 * One configuration and all that is made ready from it. It never changes: a new configuration is a new
 * setup, and what was accepted under one is finished under it.
 */
export type Setup = {
  readonly config: Config
  /** Where its secrets are looked up. */
  readonly env: NodeJS.ProcessEnv
  readonly byPath: ReadonlyMap<string, ReadyWebhook>
  readonly maxBodyBytes: number
  readonly runEvent: RunEvent
}

/** Makes a configuration ready to be worked with. */
export const createSetup = (config: Config, env: NodeJS.ProcessEnv, runEvent: RunEvent): Setup => ({
  config,
  env,
  byPath: webhooksByPath(config, env),
  maxBodyBytes: config.gateway.server.body_limit,
  runEvent,
})
