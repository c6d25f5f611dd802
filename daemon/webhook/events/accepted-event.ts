import type { EventRecord } from '../../../shared/api/api.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { formatDuration } from '../../../shared/text.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { ResolvedTarget, SeenCode } from '../../delivery/sender.ts'
import { copyError, type ErrorCopy, toError } from '../../util/error-copy.ts'
import { textOfValue } from '../../util/payload-path.ts'
import { expandWorkspace, type WorkspaceRequest } from '../../workspace/request.ts'
import { hasBodyToken } from '../read-delivery.ts'
import type { CompiledRule, CompiledWebhook } from '../compiled-webhook.ts'
import type { DeliveryKey } from '../dedupe.ts'
import { toRuleKey } from '../mentions/comment.ts'
import { isForm, isMultipart, type Payload } from '../body.ts'
import { type ContextRequest, makePrompt } from '../prompt.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import { type PathsRequest, toPathsRequest } from '../rules/changes.ts'
import { toWhoRequest, type WhoRequest } from '../rules/who.ts'
import { type Coalesced, describeEmptyKey, toCoalesced, toUpdateKey } from '../rules/groups.ts'
import { type CheckRequest, toCheckRequest } from '../signs/check.ts'
import { type SeenRequest, toSeenRequest } from '../signs/request.ts'
import type { Leaving } from '../approvals/leaving.ts'
import { describeSubject } from './subject.ts'
import { expandTargets } from '../targets.ts'
import { type SessionRequest, toSessionRequest } from '../../sessions/request.ts'
import type { Run } from '../../usage/usage-log.ts'
import type { KeptPayload } from './kept-payloads.ts'

/** An accepted event: everything that is kept of a delivery, without its payload. */
export type AcceptedEvent = {
  readonly webhook: Pick<
    CompiledRule,
    | 'path'
    | 'agentName'
    | 'agent'
    | 'values'
    | 'publish'
    | 'outputs'
    | 'bot'
    | 'runLimit'
    | 'allowSecrets'
  >
  /** Holds its answer back from its targets. */
  readonly leaving?: Leaving | undefined
  /** The owner's words on the answer before. */
  readonly remark?: string | undefined
  /** The digest of each target that its owner has approved. */
  readonly approved?: readonly string[] | undefined
  readonly receivedAt: Date
  readonly known: Known
  readonly prompt: string
  /** For an agent with `event_file`, until the event is over. */
  readonly payload?: Buffer | undefined
  /** What has to be among the changed files before its agent runs. */
  readonly paths?: PathsRequest | undefined
  /** What who started it has to be. */
  readonly who?: WhoRequest | undefined
  /** What shows at the sender that it runs. */
  readonly seen?: SeenRequest | undefined
  readonly check?: CheckRequest | undefined
  /** The code that its agent sees. */
  readonly workspace?: WorkspaceRequest | undefined
  /** The conversation that it goes on with. */
  readonly session?: SessionRequest | undefined
  /** What its prompt has places for. */
  readonly context?: ContextRequest | undefined
  readonly targets: readonly ResolvedTarget[]
  /** With `update`: what identifies the comment that the answer updates. */
  readonly updateKey?: string | undefined
  readonly checkName?: string | undefined
  /** Of the run that gave the answer, for a retry of its delivery. */
  readonly code?: SeenCode | undefined
  /** What the owner is told of it while it waits. */
  readonly detail?: string | undefined
  /** The newest of its key runs; not for one that is run again. */
  readonly coalesced?: Coalesced | undefined
  /** Identifies the same delivery when the sender repeats it. */
  readonly delivery?: DeliveryKey | undefined
}

/** The fields of an event that name its delivery and its rule. */
type Known = Pick<
  EventRecord,
  'webhook' | 'rule' | 'agent' | 'size' | 'deliveryId' | 'signed' | 'source' | 'subject'
>

/** What a run of it is counted for. */
export const toCounted = ({ webhook, known }: AcceptedEvent): Run => ({
  agent: webhook.agentName,
  rule: known.rule === undefined ? webhook.path : `${webhook.path} ${known.rule}`,
})

/**
 * Makes the event of a rule for a delivery: the only maker, for what was sent, read from the sender's API, or is
 * run again. Throws `template-failed`, and `body-too-large` for a prompt longer than a string can be.
 */
export const createEvent = (rule: CompiledRule, read: ReadDelivery): AcceptedEvent => {
  const { webhook, headers, receivedAt, body, payload, scope } = read
  const coalesced = rule.coalesce && toCoalesced(rule, scope, receivedAt)
  const { prompt, context } = makePrompt(rule, scope)
  const subject = describeSubject(read, rule)
  const session = toSessionRequest(rule, scope, subject)
  return {
    webhook: rule,
    receivedAt,
    known: toKnown(webhook, { ...read, subject }, body.bytes.length, rule),
    prompt,
    context,
    paths: toPathsRequest(rule, scope),
    who: toWhoRequest(rule, read),
    seen: toSeenRequest(rule, read),
    check: toCheckRequest(rule, read),
    workspace: rule.workspace && expandWorkspace(rule.workspace, scope),
    targets: expandTargets(rule.targets, scope, read.signed || read.source === 'api'),
    updateKey: rule.update ? toUpdateKey(rule, coalesced) : undefined,
    checkName: rule.checkName,
    payload: toEventFile(rule.agent, { body, headers }, payload, webhook.scheme),
    ...(rule.leaving && { leaving: rule.leaving }),
    coalesced: typeof coalesced === 'object' ? coalesced : undefined,
    session: typeof session === 'object' ? session : undefined,
    detail: describeWaiting(coalesced) ?? describeNoSession(session),
    delivery: toRuleKey(rule, read),
  }
}

/** What is known of a delivery, or of one that was refused; without a rule for one that runs none. */
export const toKnown = (
  { path, rules }: Pick<CompiledWebhook, 'path' | 'rules'>,
  {
    deliveryId,
    signed,
    source,
    subject,
  }: Pick<Known, 'deliveryId' | 'signed' | 'source' | 'subject'>,
  size: number,
  rule: CompiledRule | undefined = rules.length === 1 ? rules[0] : undefined,
): Known => ({
  webhook: path,
  rule: rule?.name,
  agent: rule?.agentName ?? null,
  size,
  deliveryId,
  signed,
  source,
  subject,
})

const describeWaiting = (coalesced: Coalesced | string | undefined): string | undefined => {
  if (typeof coalesced === 'string') return `it is ${describeEmptyKey(coalesced)}`
  return coalesced === undefined || coalesced.quietMs === 0
    ? undefined
    : `it waits for newer events with its key: ${formatDuration(coalesced.quietMs)}`
}

const describeNoSession = (session: SessionRequest | string | undefined): string | undefined =>
  typeof session === 'string'
    ? `it has no conversation: ${session} of session is empty in this event`
    : undefined

/** An accepted event for another process or machine; its prompt travels beside it. */
export type EventOnWire = Omit<AcceptedEvent, 'prompt' | 'detail' | 'targets'> & {
  readonly targets: readonly TargetOnWire[]
}

type TargetOnWire =
  | Exclude<ResolvedTarget, { kind: 'invalid' }>
  | { readonly text: string; readonly kind: 'invalid'; readonly error: ErrorCopy }

/** Copies what another process needs: no key of a signature, and nothing of the rule but what a run reads. */
export const toWire = ({
  prompt: _prompt,
  detail: _detail,
  ...event
}: AcceptedEvent): EventOnWire => {
  const { path, agentName, agent, values, publish, outputs, bot, runLimit, allowSecrets } =
    event.webhook
  const kept = {
    ...(runLimit && { runLimit }),
    ...(allowSecrets && { allowSecrets }),
    ...(publish && { publish }),
    ...(outputs && { outputs }),
    ...(bot !== undefined && { bot }),
  }
  return {
    ...event,
    webhook: { path, agentName, agent, values, ...kept },
    targets: event.targets.map((target) =>
      target.kind === 'invalid' ? { ...target, error: copyError(target.error) } : target,
    ),
  }
}

/** The event that `toWire` has copied. */
export const fromWire = (wire: EventOnWire, prompt: string): AcceptedEvent => ({
  ...wire,
  prompt,
  targets: wire.targets.map((target) =>
    target.kind === 'invalid' ? { ...target, error: toError(target.error) } : target,
  ),
})

/** True for an agent that gets the payload in a file. */
export const takesFile = (agent: Agent): boolean =>
  (agent.kind === 'command' || agent.kind === 'http') && agent.event_file === true

/** The payload as JSON, for an agent with `event_file`. */
export const toEventFile = (
  agent: Agent,
  { body, headers }: KeptPayload,
  payload: Payload,
  scheme: Partial<Pick<SignatureScheme, 'forms'>>,
): Buffer | undefined => {
  if (!takesFile(agent)) return undefined
  const type = headers['content-type']?.[0]
  const isJson = body.bytes.length > 0 && !isForm(type) && !isMultipart(type)
  return isJson && !hasBodyToken(scheme) ? body.compact().bytes : Buffer.from(textOfValue(payload))
}

/** Events that can be run again: until they are done, or their prompt is no longer in memory. */
export type RetryableEvents<Value> = {
  readonly keep: (id: string, value: Value) => void
  readonly get: (id: string) => Value | undefined
  readonly entries: () => readonly (readonly [id: string, value: Value])[]
}

/** Keeps values by the id of an event, and deletes each when its event is done or forgotten. */
export const createRetryableEvents = <Value>(events: EventStore): RetryableEvents<Value> => {
  const kept = new Map<string, Value>()
  events.onForget((id) => kept.delete(id))
  events.follow(({ record: { id, state, targets } }) => {
    const isOver = state === 'filtered' || state === 'declined' || state === 'done'
    // A preview can be sent after all.
    if (isOver && !targets.some((target) => target.state === 'previewed')) kept.delete(id)
  })
  return {
    keep: (id, value) => void kept.set(id, value),
    get: (id) => kept.get(id),
    entries: () => [...kept],
  }
}
