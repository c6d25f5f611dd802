import type { RunInput } from '../../../shared/api/api.ts'
import { publishesChange } from '../../../shared/targets/targets.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import type { Answer } from '../../agents/answer.ts'
import type { Question } from '../../agents/http-agent.ts'
import type { Invoke } from '../../agents/invoke.ts'
import type { SeenCode } from '../../delivery/sender.ts'
import type { CommentMarks } from '../../delivery/loop-guard.ts'
import { readAnswer } from '../../delivery/outputs/read-answer.ts'
import { ReviewMarks } from '../../delivery/review-marks.ts'
import { parseAnswer } from '../../delivery/format/review.ts'
import { toCommitMessage } from '../../delivery/targets/github/pull-request.ts'
import { readHunks } from '../../workspace/context/changes.ts'
import { type ListChange, requirePaths } from '../../workspace/context/changed-files.ts'
import { fillContexts } from '../../workspace/context/context.ts'
import { askCommits, type AskGithub } from '../../workspace/context/github.ts'
import { findRepositoryName, type WorkspaceRequest } from '../../workspace/request.ts'
import { RunClock } from '../../workspace/run-clock.ts'
import type { RequireRole } from '../../sender-apis/roles.ts'
import type { Workspace, PrepareWorkspace } from '../../workspace/workspaces.ts'
import type { SessionCode, Sessions } from '../../sessions/sessions.ts'
import type { AcceptedEvent } from './accepted-event.ts'

export type AskParts = {
  readonly prepareWorkspace: PrepareWorkspace
  readonly askGithub: AskGithub
  readonly listChange: ListChange
  readonly requireRole: RequireRole
  readonly invoke: Invoke
  readonly sessions: Pick<Sessions, 'run'>
  /** Undefined with several machines: each knows its own texts only. */
  readonly marks: CommentMarks | undefined
}

type Asked = {
  readonly id: string
  readonly event: AcceptedEvent
  readonly signal: AbortSignal
  /** Called with what the agent gets and uses, and with its prompt where that has contexts. */
  readonly had: (input: RunInput, prompt?: string) => void
}

/** What is known of a run before its workspace and its program are there. */
export const toRunInput = ({ prompt, context }: AcceptedEvent): RunInput => ({
  promptSize: context ? undefined : Buffer.byteLength(prompt),
  context: undefined,
  sandbox: undefined,
  usage: undefined,
  session: undefined,
})

/** An answer, the code that it is about, and what the owner should know. */
type Answered = {
  readonly answer: Answer
  readonly seen: SeenCode | undefined
  readonly notes: readonly string[]
}

export type Ask = (asked: Asked) => Promise<Answered>

/** Runs the agent of an event, with the code that its rule gives it. Throws why there is no answer. */
export const createAsk =
  (parts: AskParts): Ask =>
  async (asked) => {
    const { event, signal } = asked
    const { agent } = event.webhook
    if (event.who) await parts.requireRole(event.who)
    if (event.workspace) return askWithCode(parts, asked, event.workspace)
    if (event.paths) await requirePaths(event.paths, undefined, parts.listChange, signal)
    const question = toQuestion(asked, event.prompt)
    const { answer, notes } = await invokeInSession(parts, asked, question, agent)
    return { answer, seen: undefined, notes }
  }

/** Asks the agent, which goes on with the conversation of its event where the rule has `session`. */
const invokeInSession = async (
  { invoke, sessions }: Pick<AskParts, 'invoke' | 'sessions'>,
  { id, event, signal, had }: Asked,
  question: Question,
  agent: Agent,
  code?: SessionCode,
): Promise<Pick<Answered, 'answer' | 'notes'>> => {
  const { session, webhook } = event
  const { agentName } = webhook
  if (!session) return { answer: await invoke(agentName, agent, question, signal), notes: [] }
  return sessions.run(
    session,
    { id, agentName, agent: webhook.agent, code },
    async (turn) => invoke(agentName, agent, { ...question, session: turn }, signal),
    (went) => had({ session: went }),
  )
}

const askWithCode = async (
  parts: AskParts,
  asked: Asked,
  wanted: WorkspaceRequest,
): Promise<Answered> => {
  const { prepareWorkspace, askGithub, listChange, marks } = parts
  const { id, event, signal } = asked
  const { agent } = event.webhook
  const clock = new RunClock(agent.timeout, signal)
  let workspace: Workspace | undefined
  try {
    const request = await askCommits(wanted, askGithub, clock.signal)
    workspace = await prepareWorkspace(request, id, clock.signal, () => clock.begin('checkout'))
    clock.begin('context')
    if (event.paths) await requirePaths(event.paths, workspace, listChange, clock.signal)
    const posted = { eventId: id, webhook: event.webhook.path, rule: event.known.rule }
    const filled = await fillContexts(
      event,
      workspace,
      async (call) => askGithub(request, clock.signal, call),
      marks && ((address) => new ReviewMarks(marks, posted, address)),
    )
    const { prompt, contexts, notes, notRead } = filled
    if (event.context)
      asked.had({ promptSize: Buffer.byteLength(prompt), context: contexts }, prompt)
    clock.begin('agent')
    const repository = findRepositoryName(request.repo)
    const code = { path: workspace.path, access: request.access, repository }
    const question = { ...toQuestion(asked, prompt), workspace: code }
    const limited = { ...agent, timeout: clock.leftMs() }
    const { head } = workspace
    const { answer, notes: ofSession } = await invokeInSession(parts, asked, question, limited, {
      request,
      commit: head,
    })
    clock.begin('commit')
    const { text } = readAnswer(answer.text, event.webhook.outputs, event.targets)
    const captured = await captureChange(workspace, event, id, text)
    const hunks = await captureHunks(workspace, event, answer.text)
    const seen = { head, change: captured?.change, leftOut: notes, notRead, hunks }
    const all = [...workspace.notes, ...notes, ...ofSession, ...(captured?.notes ?? [])]
    return { answer, seen, notes: all }
  } catch (error) {
    throw clock.explain(error)
  } finally {
    clock.end()
    await workspace?.release()
  }
}

const toQuestion = ({ id, event, had }: Asked, prompt: string) => {
  const { webhook, payload, known } = event
  const { deliveryId, rule } = known
  const confined: Question['confined'] = (sandbox) => had({ sandbox })
  const used: Question['used'] = (usage) => had({ usage })
  return {
    prompt,
    webhook: webhook.path,
    rule,
    eventId: id,
    deliveryId,
    payload,
    confined,
    used,
    most: webhook.runLimit,
  }
}

/** Commits what the agent changed, when a target wants it: the worktree is gone when that is delivered. */
const captureChange = async (
  workspace: Workspace,
  { workspace: request, targets }: AcceptedEvent,
  id: string,
  text: string,
): Promise<{ change: SeenCode['change']; notes: readonly string[] } | undefined> => {
  if (request?.access !== 'write' || !targets.some(publishesChange)) return undefined
  const { ref, notes } = await workspace.commit(toCommitMessage(text, id))
  if (ref !== undefined) return { change: { gitDir: workspace.gitDir, ref }, notes }
  return { change: notes.length === 0 ? 'none' : 'left-out', notes }
}

/** The diffs of the files that a review comments on: its server may give none. */
const captureHunks = async (
  workspace: Workspace,
  { targets }: AcceptedEvent,
  text: string,
): Promise<SeenCode['hunks']> => {
  const { base, start: from = base } = workspace
  const isReview = targets.some(({ kind }) => kind.endsWith('-review'))
  const paths = isReview ? parseAnswer(text).comments.map(({ path }) => path) : []
  if (from === undefined || paths.length === 0) return undefined
  // Without them a comment is in the text of the review.
  return readHunks({ ...workspace, from }, paths).catch(() => undefined)
}
