import { setMaxListeners } from 'node:events'
import type { TargetResult } from '../../shared/api.ts'
import type { TargetSettings } from '../../shared/config/schema.ts'
import type { SentKind } from '../../shared/config/targets.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import type { OAuth } from '../oauth/oauth.ts'
import type { DeliveryError } from './delivery-error.ts'
import type { CommentMarks, OwnMessages } from './loop-guard.ts'
import { createSendParts, type Progress } from './multipart.ts'
import type { RetryRules, Tried } from './retry.ts'
import type { AgentReply, ResolvedTarget, Sender } from './sender.ts'
import { createDiscord } from './targets/discord.ts'
import { createEmail } from './targets/email.ts'
import { appendToFile } from './targets/file.ts'
import { createGithub } from './targets/github.ts'
import { createHttp } from './targets/http.ts'
import { writeToStandardOutput } from './targets/log.ts'
import { createSlack } from './targets/slack.ts'
import { createTelegram } from './targets/telegram.ts'
import type { TokenSource } from './token.ts'

/*
 * The story of one answer: it goes to all its targets at once, so that one that is slow or fails does not
 * keep it from the others.
 *
 *   answer -> parts -> each part in turn: send, and again while that makes sense -> done, or failed with
 *   the reason; a later delivery of the same answer goes on at the part that failed
 */

type DeliverOptions = {
  /** Places in the list of targets; by default all of them. */
  readonly only?: readonly number[] | undefined
  /** The daemon cannot wait any longer. */
  readonly signal?: AbortSignal
  /** How the target at this place of the list is doing. */
  readonly changed?: (place: number, result: TargetResult) => void
}

/**
 * Brings an answer to its targets, and gives a result for each of those it was to go to, in their order.
 * Never rejects: what failed is in the results.
 */
export type Deliver = (
  targets: readonly ResolvedTarget[],
  answered: AgentReply,
  options?: DeliverOptions,
) => Promise<TargetResult[]>

export type DeliverParts = SenderParts & {
  readonly homeFolder: string
  /** How far answers of several messages have come: it outlives a change of the configuration. */
  readonly progress: Progress
  readonly log: Log
  readonly rules?: RetryRules
  /** Whether anybody follows the events, as a tray does. */
  readonly isFollowed: () => boolean
}

export const createDeliver = (parts: DeliverParts): Deliver => {
  const { homeFolder, progress, log, rules, isFollowed } = parts
  const sendParts = createSendParts(createSenders(parts), progress, rules)

  /** Brings it to one target; what it returns is a remark for the person who looks at the event. */
  const bring = async (
    target: ResolvedTarget,
    answered: AgentReply,
    tried: Pick<Tried, 'signal' | 'again'>,
  ): Promise<string | undefined> => {
    switch (target.kind) {
      case 'invalid':
        throw target.error
      case 'log':
        return writeToStandardOutput(answered)
      case 'file':
        return appendToFile(target.path, answered, homeFolder)
      case 'notify':
        // The tray follows the events and shows this one; the event itself is the delivery.
        return isFollowed() ? undefined : 'no tray was there to show it'
      case 'slack':
      case 'telegram':
      case 'discord':
      case 'email':
      case 'github':
      case 'http':
        return sendParts(target, answered, tried)
    }
  }

  const deliverTo = async (
    target: ResolvedTarget,
    answered: AgentReply,
    signal: AbortSignal,
    changed: (result: TargetResult) => void,
  ): Promise<TargetResult> => {
    let attempts = 1
    const result = (state: TargetResult['state'], more: Pick<TargetResult, 'code' | 'detail'>) => {
      const now = { target: target.text, state, attempts, ...more }
      changed(now)
      return now
    }
    const again = ({ message }: DeliveryError) => {
      result('waiting', { detail: `${message}; it is tried again` })
      attempts += 1
    }
    try {
      const detail = await bring(target, answered, { signal, again })
      return result('done', detail === undefined ? {} : { detail })
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error(
          { event: answered.eventId, target: target.kind, error: errorName(error) },
          'internal error',
        )
      return result('failed', describeReason(error))
    }
  }

  return async (targets, answered, options = {}) => {
    if (targets.length === 0) return []
    const { only = [...targets.keys()], signal = new AbortController().signal, changed } = options
    // All targets of all events that are delivered now listen to the one signal of the daemon's end.
    setMaxListeners(0, signal)
    return Promise.all(
      only.flatMap((place) => {
        const target = targets[place]
        return target
          ? [deliverTo(target, answered, signal, (result) => changed?.(place, result))]
          : []
      }),
    )
  }
}

const describeReason = (error: unknown): { code: string; detail: string } => {
  if (!(error instanceof DoorwardError))
    return { code: 'internal', detail: 'something went wrong inside the daemon' }
  const { code, message, hint } = error
  return { code, detail: hint === undefined ? message : `${message} (${hint})` }
}

type SenderParts = {
  /** `targets:` of gateway.yaml. */
  readonly targets: TargetSettings
  /** Where the variables are that it names. */
  readonly env: NodeJS.ProcessEnv
  /** Fresh tokens of logins. */
  readonly access: OAuth['access']
  readonly marks: CommentMarks
  readonly messages: OwnMessages
}

/** Every target that leaves the machine, by its kind. */
const createSenders = ({
  targets,
  env,
  access,
  marks,
  messages,
}: SenderParts): Readonly<Record<SentKind, Sender>> => {
  const { slack, telegram, discord, email, github, http } = targets
  const token = (
    target: string,
    tokenEnv: string | undefined,
    provider: string | undefined,
  ): TokenSource => ({ target, tokenEnv, provider, env, access })
  return {
    slack: createSlack(slack.api_url, token('slack', slack.token_env, 'slack'), messages),
    telegram: createTelegram(telegram, token('telegram', telegram.token_env, undefined)),
    discord: createDiscord(discord, env),
    email: createEmail(email, env, token('email', undefined, 'google')),
    github: createGithub(github.api_url, token('github', github.token_env, 'github'), marks),
    http: createHttp(http, env),
  }
}
