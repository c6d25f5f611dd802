import { join, resolve } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { collectWarnings } from '../../shared/config/warnings.ts'
import type { Warning } from '../../shared/config/warning.ts'
import type { Config } from '../../shared/config/load.ts'
import { enabledRules } from '../../shared/schedules/definitions.ts'
import { reservedSegments } from '../../shared/config/webhook.ts'
import { createInvoke } from '../agents/invoke.ts'
import type { RunProcess } from '../agents/orphans.ts'
import { Attempts } from '../delivery/changes/attempts.ts'
import { PostedMessages } from '../delivery/targets/slack-posted.ts'
import { createDeliver, createSenders, type Senders } from '../delivery/deliver.ts'
import type { CommentMarks, OwnMessages } from '../delivery/loop-guard.ts'
import type { Progress } from '../delivery/message-parts.ts'
import { createPreview, type Preview } from '../delivery/preview.ts'
import { listConfigured } from '../delivery/secrets/held.ts'
import { createInspect, type Inspect, type InspectParts } from '../delivery/secrets/inspect.ts'
import { loadMail } from '../delivery/targets/smtp.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { createRequireRole, type RequireRole } from '../sender-apis/roles.ts'
import { createGit } from '../workspace/git.ts'
import { createListChange } from '../workspace/context/changed-files.ts'
import { createAskGithub } from '../workspace/context/github.ts'
import type { Workspaces } from '../workspace/workspaces.ts'
import { type CompiledWebhook, webhooksByPath } from './compiled-webhook.ts'
import { type Ask, createAsk } from './events/ask.ts'
import { createAcknowledge } from './signs/acknowledge.ts'
import { createChecks } from './signs/check.ts'
import { Signs } from './signs/signs.ts'
import { type RunEvent, type RunEventParts, createRunEvent } from './events/runner.ts'

/**
 * One compiled configuration. It never changes: a new configuration is a new engine, and each event is
 * finished with the engine that accepted it.
 */
export type Engine = {
  readonly config: Config
  /** The source of its secrets. */
  readonly env: NodeJS.ProcessEnv
  /** For the owner to read; found when they are first read. */
  readonly warnings: readonly Warning[]
  readonly byPath: ReadonlyMap<string, CompiledWebhook>
  /** The webhook whose address differs from this path in case or slashes only. */
  readonly nearest: (path: string) => CompiledWebhook | undefined
  readonly maxBodyBytes: number
  readonly runEvent: RunEvent
  readonly signs: Signs
  readonly requireRole: RequireRole
  /** Runs the agent of an event of another machine. */
  readonly ask: Ask
  /** Searches what is about to leave for secrets. */
  readonly inspect: Inspect
  /** The targets outside this machine, for a check of them. */
  readonly senders: () => Senders
}

/** What all engines of a daemon share: a change of the configuration does not replace it. */
export type EngineServices = Omit<
  RunEventParts,
  | 'invoke'
  | 'deliver'
  | 'preview'
  | 'leavingOf'
  | 'inspect'
  | 'prepareWorkspace'
  | 'askGithub'
  | 'listChange'
  | 'requireRole'
  | 'signs'
> & {
  readonly home: Home
  /** Runs the programs of agents. */
  readonly run: RunProcess
  readonly workspaces: Workspaces
  /** Fresh tokens of logins. */
  readonly access: Tokens['access']
  /** The secrets of logins, clients and bots. */
  readonly held: InspectParts['held']
  readonly marks: CommentMarks
  readonly messages: OwnMessages
  readonly progress: Progress
  /** True while a tray follows the events. */
  readonly hasTray: () => boolean
}

/** Compiles a configuration. */
export const createEngine = (
  config: Config,
  env: NodeJS.ProcessEnv,
  envWarnings: readonly Warning[],
  parts: EngineServices,
): Engine => {
  const { home, run, access, marks, messages, progress, log, hasTray } = parts
  const { server, targets } = config.gateway
  const homeFolder = home.root
  const invoke = createInvoke({
    env,
    homeFolder,
    // The daemon's own working folder differs in the foreground and after a restart.
    run: async (options) => run({ ...options, cwd: resolve(homeFolder, options.cwd) }),
    access,
  })
  const senderParts = {
    targets,
    env,
    access,
    marks,
    messages,
    git: createGit(run, env, home.run),
    attempts: new Attempts(join(home.run, 'attempts')),
    posted: new PostedMessages(join(home.run, 'slack-messages')),
  }
  const inspect = createInspect({
    git: senderParts.git,
    configured: listConfigured(config, env),
    held: parts.held,
  })
  const deliver = createDeliver({ ...senderParts, homeFolder, progress, log, hasTray })
  const preview: Preview = async (target, reply) =>
    createPreview(createSenders(senderParts))(target, reply)
  const askGithub = createAskGithub(config.gateway, env, access)
  const askParts = {
    askGithub,
    listChange: createListChange(config.gateway, env, access, askGithub),
    requireRole: createRequireRole(config.gateway, env, access),
    prepareWorkspace: parts.workspaces.preparer(config.gateway, env),
    invoke,
    sessions: parts.sessions,
    marks: config.gateway.queue.engine === 'nats' ? undefined : marks,
  }
  // Now: an update may replace the files of a daemon that runs.
  if (enabledRules(config).some(({ targets }) => targets.some(({ kind }) => kind === 'email')))
    loadMail()
  const byPath = webhooksByPath(config, env)
  const signs = new Signs(
    createAcknowledge(config.gateway, env, access),
    createChecks(config.gateway, env, access, marks),
  )
  let warnings: readonly Warning[] | undefined
  return {
    config,
    env,
    get warnings() {
      warnings ??= [...collectWarnings(config, env), ...envWarnings]
      return warnings
    },
    byPath,
    nearest: nearestByPath(byPath),
    maxBodyBytes: server.body_limit,
    runEvent: createRunEvent({
      ...parts,
      ...askParts,
      deliver,
      preview,
      leavingOf: ({ webhook, known }) =>
        byPath.get(webhook.path)?.rules.find(({ name }) => name === known.rule)?.leaving,
      inspect,
      signs,
    }),
    inspect,
    signs,
    requireRole: askParts.requireRole,
    ask: createAsk(askParts),
    senders: () => createSenders(senderParts),
  }
}

/** Paths that differ in case or slashes only are the same here. */
const simplify = (path: string): string =>
  path
    .toLowerCase()
    .replaceAll(/\/{2,}/g, '/')
    .replace(/(?!^)\/$/, '')

const isOfApi = (path: string): boolean => reservedSegments.includes(path.split('/')[1] ?? '')

/** Finds the webhook whose address differs only in case or slashes. */
const nearestByPath = (
  byPath: ReadonlyMap<string, CompiledWebhook>,
): ((path: string) => CompiledWebhook | undefined) => {
  const simple = [...byPath].map(([path, webhook]) => [simplify(path), webhook] as const)
  const bySimple = new Map(simple.filter(([path]) => !isOfApi(path)))
  return (path) => bySimple.get(simplify(path))
}
