import { type TargetSettings, targetsSchema } from '../../../shared/targets/schema.ts'
import { join } from 'node:path'
import type { z } from 'zod'
import { Attempts } from '../../../daemon/delivery/changes/attempts.ts'
import { PostedMessages } from '../../../daemon/delivery/targets/slack-posted.ts'
import { parseTarget, withReads } from '../../../shared/targets/targets.ts'
import type { AgentReply, ResolvedTarget } from '../../../daemon/delivery/sender.ts'
import {
  type Deliver,
  type DeliverParts,
  createDeliver,
  createSenders,
} from '../../../daemon/delivery/deliver.ts'
import { createPreview, type Preview } from '../../../daemon/delivery/preview.ts'
import { createCommentMarks, OwnMessages } from '../../../daemon/delivery/loop-guard.ts'
import { createProgress } from '../../../daemon/delivery/message-parts.ts'
import { runProcess } from '../../../daemon/agents/process.ts'
import { createGit } from '../../../daemon/workspace/git.ts'
import type { OAuth } from '../../../daemon/oauth/oauth.ts'
import { expandTargets } from '../../../daemon/webhook/targets.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { scopeOf } from '../scope.ts'

/** The rules of retries with waits that a test can wait for. */
export const quickRules = {
  retries: 5,
  firstWaitMs: 5,
  maxWaitMs: 20,
  totalMs: 10_000,
  attemptMs: 2000,
  mailTimeoutMs: 10_000,
}

export type DeliverTest = {
  readonly deliver: Deliver
  readonly preview: Preview
  /** What was asked of the broker. */
  readonly asked: { readonly provider: string; readonly asker: string; readonly renewed: boolean }[]
  /** What each token was asked for, as that of a bot is made. */
  readonly granted: unknown[]
  /** Everything that was logged, as text. */
  readonly logged: () => string
}

/** `deliver` as the daemon has it, with a broker that hands out these tokens in turn. */
export const deliverWith = (
  targets: z.input<typeof targetsSchema>,
  {
    env = {},
    tokens = {},
    rules = quickRules,
    homeFolder = '/nowhere',
    messages = new OwnMessages(),
  }: {
    readonly env?: Readonly<Record<string, string>>
    readonly tokens?: Readonly<Record<string, readonly string[]>>
    readonly rules?: DeliverParts['rules']
    readonly homeFolder?: string
    readonly messages?: OwnMessages
  } = {},
): DeliverTest => {
  const settings: TargetSettings = targetsSchema.parse(targets)
  const asked: { provider: string; asker: string; renewed: boolean }[] = []
  const granted: unknown[] = []
  const given = new Map<string, number>()
  const access: OAuth['access'] = async (provider, { asker, minValidityMs, permissions }) => {
    const renewed = minValidityMs !== undefined
    asked.push({ provider, asker, renewed })
    granted.push(permissions)
    const all = tokens[provider]
    if (!all)
      throw new DoorwardError('not-logged-in', `not logged in to ${provider}`, {
        hint: `doorward oauth login ${provider}`,
      })
    const place = Math.min((given.get(provider) ?? 0) + (renewed ? 1 : 0), all.length - 1)
    given.set(provider, place)
    const accessToken = all[place] ?? ''
    return { provider, accessToken, tokenType: 'Bearer', expiresAt: null, scopes: [] }
  }
  const lines: unknown[] = []
  const log = (...args: unknown[]) => void lines.push(args)
  const parts: DeliverParts = {
    homeFolder,
    targets: settings,
    env,
    access,
    marks: createCommentMarks('an api token'),
    messages,
    attempts: new Attempts(join(homeFolder, 'attempts')),
    posted: new PostedMessages(join(homeFolder, 'slack-messages')),
    git: createGit(runProcess, { ...process.env, ...env }, homeFolder),
    progress: createProgress(),
    log: { debug: log, info: log, warn: log, error: log },
    rules,
    hasTray: () => true,
  }
  const preview = createPreview(createSenders(parts))
  return {
    deliver: createDeliver(parts),
    preview,
    asked,
    granted,
    logged: () => JSON.stringify(lines),
  }
}

/** Targets as they are after the configuration was read and the event was put into them. */
export const resolveTargets = (
  texts: readonly string[],
  payload: unknown = {},
  http: z.input<typeof targetsSchema>['http'] = {},
): ResolvedTarget[] => {
  const entries = targetsSchema.parse({ http }).http
  const targets = texts.map((text) => withReads(parseTarget(text), entries))
  return expandTargets(targets, scopeOf(payload))
}

export const makeReply = (text = 'an answer', more: Partial<AgentReply> = {}): AgentReply => ({
  eventId: 'evt_0123456789abcdef01',
  webhook: '/github',
  receivedAt: new Date(Date.UTC(2026, 0, 1)),
  text,
  ...more,
})
