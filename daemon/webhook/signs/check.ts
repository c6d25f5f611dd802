import type { EventRecord } from '../../../shared/api/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { parseAnswer } from '../../delivery/format/review.ts'
import type { CommentMarks } from '../../delivery/loop-guard.ts'
import { createGithubApi } from '../../delivery/targets/github/github-api.ts'
import { findCommit } from '../../delivery/outputs/subject.ts'
import type { LiveCheck } from '../../delivery/sender.ts'
import { runAgain } from '../../delivery/targets/github/github-check.ts'
import type { Tokens } from '../../oauth/dependencies.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import { findApi } from '../../workspace/context/github.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { ReadDelivery } from '../read-delivery.ts'

/*
 * A check run of a bot that follows an event: queued, in progress, completed
 * (docs.github.com/rest/checks/runs). It says how the run ended, and nothing of why.
 */

export type CheckRequest = {
  readonly repository: string
  readonly name: string
  /** The login of the bot. */
  readonly bot: string
  /** A commit, or the pull request whose head it is. */
  readonly of: { readonly sha: string } | { readonly pull: number }
}

/** Undefined for a rule without `check`, and for an event that is about no commit. */
export const toCheckRequest = (
  { check, checkName, name, path, bot }: CompiledRule,
  { payload }: Pick<ReadDelivery, 'payload'>,
): CheckRequest | undefined => {
  const repository = textAt(payload, 'repository', 'full_name')
  if (!check || bot === undefined || repository === undefined) return undefined
  const sha = findCommit(payload)
  const isPull = valueAt(payload, ['issue', 'pull_request']) !== undefined
  const number = valueAt(payload, ['issue', 'number'])
  const called = checkName ?? `doorward/${name ?? path.slice(1)}`
  if (sha !== undefined) return { repository, name: called, bot, of: { sha } }
  return isPull && typeof number === 'number' && Number.isSafeInteger(number) && number > 0
    ? { repository, name: called, bot, of: { pull: number } }
    : undefined
}

export type CheckState = {
  readonly status: 'queued' | 'in_progress' | 'completed'
  readonly conclusion?: string | undefined
  /** One sentence. */
  readonly title?: string | undefined
  readonly links?: EventRecord['links']
  /** The buttons, in place of that to run again. */
  readonly actions?: readonly (typeof runAgain)[]
}

/** An answer that waits; the identifiers name it, so that a press is for no later one. */
export const toWaiting = (digest: string, hasButtons: boolean): CheckState => ({
  status: 'completed',
  conclusion: 'action_required',
  title: 'The answer waits for an approval.',
  actions: hasButtons
    ? [
        {
          label: 'Send',
          description: 'Send the answer of the agent',
          identifier: `send ${digest.slice(0, 12)}`,
        },
        {
          label: 'Do not send',
          description: 'Drop the answer of the agent',
          identifier: `decline ${digest.slice(0, 12)}`,
        },
      ]
    : [],
})

/** Both throw `DeliveryError`, or why there is no token. */
export type Checks = {
  readonly open: (eventId: string, request: CheckRequest, state: CheckState) => Promise<LiveCheck>
  readonly update: (
    eventId: string,
    check: Pick<LiveCheck, 'repository' | 'number' | 'bot'>,
    state: CheckState,
  ) => Promise<void>
}

const timeoutMs = 10_000

export const createChecks = (
  gateway: Gateway,
  env: NodeJS.ProcessEnv,
  access: Tokens['access'],
  marks: CommentMarks,
): Checks => {
  const toCall = (repository: string, bot: string) => {
    const { apiUrl } = findApi({ repo: repository, fixed: 'nothing', login: bot }, gateway)
    const token = { target: 'github', tokenEnv: undefined, provider: bot, env, access }
    const attempt = { signal: new AbortController().signal, timeoutMs }
    return async (
      permissions: Readonly<Record<string, 'read' | 'write'>>,
      path: string,
      more?: { readonly body: object; readonly method?: 'PATCH' },
    ) =>
      createGithubApi(apiUrl, token)(
        { attempt, grant: { repository, permissions } },
        async (request) => request(`/repos/${repository}${path}`, more),
      )
  }
  const toBody = (
    eventId: string,
    { status, conclusion, title, links = [], actions = [runAgain] }: CheckState,
  ) => {
    const lines = links.map(({ what, url }) => `- [${what}](${url})`)
    const summary = title === undefined ? '' : [title, ...lines].join('\n')
    const page = links.find(({ url }) => url.startsWith('https://'))
    return {
      external_id: marks.markFor(eventId, 1, summary),
      status,
      ...(conclusion !== undefined && { conclusion, actions }),
      ...(title !== undefined && { output: { title, summary } }),
      ...(page && { details_url: page.url }),
    }
  }
  return {
    open: async (eventId, { repository, name, bot, of }, state) => {
      const call = toCall(repository, bot)
      const findHead = async (pull: number) => {
        const { json } = await call({ pull_requests: 'read' }, `/pulls/${pull}`)
        return textAt(json, 'head', 'sha') ?? ''
      }
      const sha = 'sha' in of ? of.sha : await findHead(of.pull)
      const body = { name, head_sha: sha, ...toBody(eventId, state) }
      const { json } = await call({ checks: 'write' }, '/check-runs', { body })
      return { repository, name, bot, sha, number: Number(json['id']) }
    },
    update: async (eventId, { repository, number, bot }, state) => {
      const body = toBody(eventId, state)
      const path = `/check-runs/${number}`
      await toCall(repository, bot)({ checks: 'write' }, path, { body, method: 'PATCH' })
    },
  }
}

/** How an event ended, for all who see the repository. */
export const toConclusion = (
  { state, stage, code, links }: Partial<EventRecord>,
  answer: string | undefined,
): CheckState => {
  const [conclusion, title] = toEnding({ state, stage, code }, answer)
  return { status: 'completed', conclusion, title, links }
}

type Ending = readonly [conclusion: string, title: string]

const toEnding = (
  { state, stage, code = '' }: Partial<EventRecord>,
  answer: string | undefined,
): Ending => {
  // Without a verdict it is neutral.
  if (state === 'done')
    return [parseAnswer(answer ?? '').conclusion ?? 'neutral', 'The agent has answered.']
  const known = endings[code]
  if (known) return known
  if (state === 'declined') return ['cancelled', 'The answer was not approved.']
  if (state === 'expired') return ['cancelled', 'No one approved the answer in time.']
  if (state !== 'failed') return ['cancelled', 'It did not run.']
  return stage === 'deliver'
    ? ['failure', 'The answer of the agent could not be delivered.']
    : ['failure', 'The agent could not finish its work.']
}

const endings: Readonly<Record<string, Ending>> = {
  superseded: ['cancelled', 'A newer event replaced it.'],
  'approval-mismatch': ['cancelled', 'The answer was not sent, as its rule has changed.'],
  'event-cancelled': ['cancelled', 'It was cancelled.'],
  'paths-unmatched': ['skipped', 'No changed file is one that it is for.'],
  'over-budget': ['skipped', 'It has run as often as it may for now.'],
  'agent-timeout': ['timed_out', 'The agent took longer than it may.'],
}
