import type { Answer } from '../../agents/answer.ts'
import type { Invoke } from '../../agents/invoke.ts'
import type { SeenCode } from '../../delivery/sender.ts'
import { toCommitMessage } from '../../delivery/targets/pull-request.ts'
import { fillContexts } from '../../workspace/context/context.ts'
import type { AskGithub } from '../../workspace/context/github.ts'
import type { Workspace, PrepareWorkspace } from '../../workspace/workspaces.ts'
import type { AcceptedEvent } from './accepted-event.ts'

export type AskParts = {
  readonly prepareWorkspace: PrepareWorkspace
  readonly askGithub: AskGithub
  readonly invoke: Invoke
}

type Asked = {
  readonly id: string
  readonly event: AcceptedEvent
  readonly signal: AbortSignal
}

/** An answer, the code that it is about, and what the owner should know. */
type Answered = {
  readonly answer: Answer
  readonly seen: SeenCode | undefined
  readonly notes: readonly string[]
}

export type Ask = (asked: Asked) => Promise<Answered>

/** Runs the agent of an event, with the code that its rule gives it. Throws why there is no answer. */
export const createAsk =
  ({ prepareWorkspace, askGithub, invoke }: AskParts): Ask =>
  async ({ id, event, signal }) => {
    const { webhook, payload, known } = event
    const { deliveryId, rule } = known
    const { workspace: request } = event
    const workspace = request && (await prepareWorkspace(request, id, signal))
    try {
      const { prompt, notes } = workspace
        ? await fillContexts(event, workspace, async (call) => askGithub(request, signal, call))
        : { prompt: event.prompt, notes: [] }
      const code = workspace && { path: workspace.path, access: request.access }
      const about = { webhook: webhook.path, rule, eventId: id, deliveryId }
      const question = { ...about, prompt, payload, workspace: code }
      const answer = await invoke(webhook.agentName, webhook.agent, question, signal)
      const change = workspace && (await captureChange(workspace, event, id, answer.text))
      const seen: SeenCode | undefined = workspace && { head: workspace.head, change }
      return { answer, seen, notes: [...(workspace?.notes ?? []), ...notes] }
    } finally {
      await workspace?.release()
    }
  }

/** Commits what the agent changed, when a target wants it: the worktree is gone when that is delivered. */
const captureChange = async (
  workspace: Workspace,
  { workspace: request, targets }: AcceptedEvent,
  id: string,
  text: string,
): Promise<SeenCode['change']> => {
  if (request?.access !== 'write' || !targets.some(({ kind }) => kind === 'pull-request'))
    return undefined
  const ref = await workspace.commit(toCommitMessage(text, id))
  return ref === undefined ? 'none' : { gitDir: workspace.gitDir, ref }
}
