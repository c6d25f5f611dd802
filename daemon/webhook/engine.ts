import { resolve } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { collectWarnings } from '../../shared/config/warnings.ts'
import type { Warning } from '../../shared/config/warning.ts'
import type { Config } from '../../shared/config/load.ts'
import { createInvoke } from '../agents/invoke.ts'
import type { RunProcess } from '../agents/orphans.ts'
import { createDeliver } from '../delivery/deliver.ts'
import type { CommentMarks, OwnMessages } from '../delivery/loop-guard.ts'
import type { Progress } from '../delivery/multipart.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { type CompiledWebhook, webhooksByPath } from './compiled-webhook.ts'
import { type RunEvent, type RunEventParts, createRunEvent } from './event-runner.ts'

/**
 * One configuration and all that is made ready from it. It never changes: a new configuration is a new
 * setup, and what was accepted under one is finished under it.
 */
export type Engine = {
  readonly config: Config
  /** Where its secrets are looked up. */
  readonly env: NodeJS.ProcessEnv
  /** What a person should know about it. */
  readonly warnings: readonly Warning[]
  readonly byPath: ReadonlyMap<string, CompiledWebhook>
  readonly maxBodyBytes: number
  readonly runEvent: RunEvent
}

/** What every setup of a daemon has in common: it outlives a change of the configuration. */
export type EngineServices = Omit<RunEventParts, 'invoke' | 'deliver'> & {
  readonly home: Home
  /** How the programs of agents are run. */
  readonly run: RunProcess
  /** Fresh tokens of logins. */
  readonly access: OAuth['access']
  readonly marks: CommentMarks
  readonly messages: OwnMessages
  readonly progress: Progress
  /** Whether anybody follows the events. */
  readonly isFollowed: () => boolean
}

/** Makes a configuration ready to be worked with. */
export const createEngine = (
  config: Config,
  env: NodeJS.ProcessEnv,
  parts: EngineServices,
): Engine => {
  const { home, run, access, marks, messages, progress, log, isFollowed } = parts
  const { server, targets } = config.gateway
  const homeFolder = home.root
  const invoke = createInvoke({
    env,
    // Our own working folder is another one in the foreground than after a restart.
    run: async (options) => run({ ...options, cwd: resolve(homeFolder, options.cwd) }),
    access,
  })
  const deliver = createDeliver({
    homeFolder,
    targets,
    env,
    access,
    marks,
    messages,
    progress,
    log,
    isFollowed,
  })
  return {
    config,
    env,
    warnings: collectWarnings(config, env),
    byPath: webhooksByPath(config, env),
    maxBodyBytes: server.body_limit,
    runEvent: createRunEvent({ ...parts, invoke, deliver }),
  }
}
