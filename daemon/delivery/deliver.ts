import { setMaxListeners } from 'node:events'
import type { EventRecord, OutputResult, TargetResult } from '../../shared/api/api.ts'
import type { TargetSettings } from '../../shared/config/schema.ts'
import type { SentKind } from '../../shared/targets/schema.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import type { Attempts } from './changes/attempts.ts'
import type { DeliveryError } from './delivery-error.ts'
import type { CommentMarks, OwnMessages } from './loop-guard.ts'
import { createPartsSender, type PartsOptions, type Progress } from './message-parts.ts'
import type { RetryRules } from './retry.ts'
import type { AgentReply, ResolvedTarget, Sender, Sent } from './sender.ts'
import { createDiscord } from './targets/discord.ts'
import { createEmail } from './targets/email.ts'
import { appendToFile } from './targets/file.ts'
import { createGithubApi, toGitOrigin } from './targets/github/github-api.ts'
import { createGithubCheck } from './targets/github/github-check.ts'
import { createGithubOutputs } from './targets/github/github-outputs.ts'
import { createGithubReview } from './targets/github/github-review.ts'
import { createGithub } from './targets/github/github.ts'
import { createPullRequest } from './targets/github/pull-request.ts'
import { createPush } from './targets/github/push.ts'
import { createGitlab } from './targets/gitlab/gitlab.ts'
import { createGitlabOutputs } from './targets/gitlab/gitlab-outputs.ts'
import { createGitlabReview } from './targets/gitlab/gitlab-review.ts'
import { createHttp } from './targets/http.ts'
import { writeToStandardOutput } from './targets/log.ts'
import { createJira } from './targets/jira.ts'
import { createLinear } from './targets/linear.ts'
import type { PostedMessages } from './targets/slack-posted.ts'
import { createSlack } from './targets/slack.ts'
import { createTelegram } from './targets/telegram.ts'
import { needsOf, type TokenSource } from './token.ts'
import type { Git } from '../workspace/git.ts'

/*
 * The story of one reply: it goes to all its targets in parallel, so that a slow or failing target delays no
 * other.
 *
 *   reply -> parts -> each part in order: send, with retries -> done, or failed with the reason; a later
 *   delivery of the same reply resumes at the part that failed
 */

/** The message that a target has made for an event. */
export type EventLinkTo = NonNullable<EventRecord['links']>[number]

type DeliverOptions = {
  /** Indexes in the list of targets; by default all. */
  readonly only?: readonly number[] | undefined
  /** The daemon stops, or the event is cancelled. */
  readonly signal?: AbortSignal
  /** The state of the target at this index. */
  readonly changed?: (index: number, result: TargetResult) => void
  /** What a target has made. */
  readonly made?: (link: EventLinkTo) => void
  /** Called with the results of requests of the answer. */
  readonly requested?: (outputs: readonly OutputResult[]) => void
}

/** Delivers a reply; returns the result of each target in order. Never rejects: failures are results. */
export type Deliver = (
  targets: readonly ResolvedTarget[],
  reply: AgentReply,
  options?: DeliverOptions,
) => Promise<TargetResult[]>

export type DeliverParts = SenderParts & {
  readonly homeFolder: string
  /** Survives a change of the configuration. */
  readonly progress: Progress
  readonly log: Log
  readonly rules?: RetryRules
  /** Whether a tray follows the events. */
  readonly hasTray: () => boolean
}

export const createDeliver = (parts: DeliverParts): Deliver => {
  const { homeFolder, progress, log, rules, hasTray } = parts
  const sendParts = createPartsSender(createSenders(parts), progress, rules)

  /** Returns a note for the event, or more, if there is any. */
  const send = async (
    target: ResolvedTarget,
    reply: AgentReply,
    options: PartsOptions,
  ): Promise<string | Sent | undefined> => {
    switch (target.kind) {
      case 'invalid':
        throw target.error
      case 'log':
        return writeToStandardOutput(reply)
      case 'file':
        return appendToFile(target.path, reply, homeFolder)
      case 'notify':
        // The tray follows the events and shows this one: the event itself is the delivery.
        return hasTray() ? undefined : 'no tray is connected to show it'
      default:
        return sendParts(target, reply, options)
    }
  }

  const deliverTo = async (
    target: ResolvedTarget,
    reply: AgentReply,
    signal: AbortSignal,
    changed: (result: TargetResult) => void,
    { made, requested }: Pick<DeliverOptions, 'made' | 'requested'>,
  ): Promise<TargetResult> => {
    let attempts = 1
    const report = (state: TargetResult['state'], more: Pick<TargetResult, 'code' | 'detail'>) => {
      const result = { target: target.text, state, attempts, ...more }
      changed(result)
      return result
    }
    const onRetry = ({ message }: DeliveryError) => {
      report('waiting', { detail: `${message}; retrying` })
      attempts += 1
    }
    try {
      const sent = await send(target, reply, {
        signal,
        onRetry,
        requested: ({ outputs = [], made: thing }) => {
          requested?.(outputs)
          if (thing) made?.({ target: target.text, ...thing })
        },
      })
      const { note: detail, made: thing } = typeof sent === 'object' ? sent : { note: sent }
      if (thing) made?.({ target: target.text, ...thing })
      return report('done', detail === undefined ? {} : { detail })
    } catch (error) {
      if (!(error instanceof DoorwardError))
        log.error(
          { event: reply.eventId, target: target.kind, error: errorName(error) },
          'internal error',
        )
      return report('failed', describeError(error))
    }
  }

  return async (targets, reply, options = {}) => {
    if (targets.length === 0) return []
    const { only = [...targets.keys()], signal = new AbortController().signal } = options
    const { changed } = options
    // Every target listens to it.
    setMaxListeners(0, signal)
    return Promise.all(
      only.flatMap((index) => {
        const target = targets[index]
        return target
          ? [deliverTo(target, reply, signal, (result) => changed?.(index, result), options)]
          : []
      }),
    )
  }
}

const describeError = (error: unknown): { code: string; detail: string } => {
  if (!(error instanceof DoorwardError))
    return { code: 'internal', detail: 'internal error of the daemon' }
  const { code, message, hint } = error
  return { code, detail: hint === undefined ? message : `${message} (${hint})` }
}

type SenderParts = {
  /** `targets:` of gateway.yaml. */
  readonly targets: TargetSettings
  /** Has the variables that the settings name. */
  readonly env: NodeJS.ProcessEnv
  /** Fresh tokens of logins. */
  readonly access: Tokens['access']
  readonly marks: CommentMarks
  readonly messages: OwnMessages
  /** Pushes branches. */
  readonly git: Git
  /** What was pushed for each subject. */
  readonly attempts: Attempts
  /** What answers with `update` replace in Slack. */
  readonly posted: PostedMessages
}

export type Senders = Readonly<Record<SentKind, Sender>>

/** All targets outside this machine. */
export const createSenders = ({
  targets,
  env,
  access,
  marks,
  messages,
  git,
  attempts,
  posted,
}: SenderParts): Senders => {
  const { slack, telegram, discord, email, github, gitlab, jira, linear, http } = targets
  const token = (
    target: string,
    tokenEnv: string | undefined,
    provider: string | undefined,
  ): TokenSource => ({ target, tokenEnv, provider, env, access })
  const githubToken = {
    ...token('github', github.token_env, github.login ?? 'github'),
    isDefault: github.token_env === undefined && github.login === undefined,
  }
  const githubApi = createGithubApi(github.api_url, githubToken)
  const gitOrigin = toGitOrigin(github.api_url)
  const changes = { git, marks, messages, attempts }
  const gitlabToken = token('gitlab', gitlab.token_env, gitlab.login ?? 'gitlab')
  const needs = needsOf(githubToken, ['repo', 'public_repo'])
  return {
    slack: createSlack(
      slack.api_url,
      token('slack', slack.token_env, slack.login ?? 'slack'),
      messages,
      posted,
    ),
    telegram: createTelegram(telegram, token('telegram', telegram.token_env, undefined)),
    discord: createDiscord(discord, env),
    email: createEmail(email, env, token('email', undefined, email.login ?? 'google')),
    github: { ...createGithub(githubApi, marks), needs, server: gitOrigin },
    'github-review': { ...createGithubReview(githubApi, marks), needs },
    'github-check': { ...createGithubCheck(githubApi, marks, messages), needs },
    'github-outputs': { ...createGithubOutputs(githubApi, marks, messages), needs },
    'pull-request': { ...createPullRequest(githubApi, gitOrigin, changes), needs },
    push: { ...createPush(githubApi, gitOrigin, changes), needs },
    gitlab: createGitlab(gitlab.api_url, gitlabToken, marks),
    'gitlab-review': createGitlabReview(gitlab.api_url, gitlabToken, marks),
    'gitlab-outputs': createGitlabOutputs(gitlab.api_url, gitlabToken, marks, messages),
    jira: createJira(jira, token('jira', jira.token_env, undefined), messages),
    linear: createLinear(
      linear.api_url,
      token('linear', linear.token_env, linear.login ?? 'linear'),
      messages,
    ),
    http: createHttp(http, env),
  }
}
