import type { EventRecord } from '../../../shared/api.ts'
import type { ResolvedTarget, SeenCode } from '../../delivery/sender.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { textOfValue } from '../../util/payload-path.ts'
import { isForm, isMultipart, type Payload } from '../body.ts'
import { hasBodyToken } from '../parse.ts'
import type { WorkspaceRequest } from '../../workspace/request.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { ContextRequest } from '../prompt.ts'
import type { DeliveryKey } from '../dedupe.ts'
import type { Coalesced } from '../rules/groups.ts'
import type { KeptPayload } from './kept-payloads.ts'

/** An accepted event: everything that is kept of a delivery, without its payload. */
export type AcceptedEvent = {
  readonly webhook: Pick<
    CompiledRule,
    'path' | 'agentName' | 'agent' | 'values' | 'deliverEmpty' | 'allowsWorkflows'
  >
  readonly receivedAt: Date
  readonly known: Pick<
    EventRecord,
    'webhook' | 'rule' | 'agent' | 'size' | 'deliveryId' | 'signed' | 'source'
  >
  readonly prompt: string
  /** For an agent with `event_file`, until the event is over. */
  readonly payload?: Buffer | undefined
  /** The code that its agent sees. */
  readonly workspace?: WorkspaceRequest | undefined
  /** What its prompt has places for. */
  readonly context?: ContextRequest | undefined
  readonly targets: readonly ResolvedTarget[]
  /** With `update`: what identifies the comment that the answer updates. */
  readonly updateKey?: string | undefined
  /** Of the run that gave the answer, for a retry of its delivery. */
  readonly code?: SeenCode | undefined
  /** What the owner is told of it while it waits. */
  readonly detail?: string | undefined
  /** The newest of its key runs; not for one that is run again. */
  readonly coalesced?: Coalesced | undefined
  /** Identifies the same delivery when the sender repeats it. */
  readonly delivery?: DeliveryKey | undefined
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
  events.follow(({ record }) => {
    if (record.state === 'done' || record.state === 'filtered') kept.delete(record.id)
  })
  return {
    keep: (id, value) => void kept.set(id, value),
    get: (id) => kept.get(id),
    entries: () => [...kept],
  }
}

/** True for an agent that gets the payload in a file. */
export const takesFile = (agent: Agent): boolean =>
  (agent.kind === 'command' || agent.kind === 'http') && agent.event_file === true

/** The payload as JSON, for an agent with `event_file`. */
export const toEventFile = (
  agent: Agent,
  { body, headers }: Pick<KeptPayload, 'body' | 'headers'>,
  payload: Payload,
  scheme: Partial<Pick<SignatureScheme, 'forms'>>,
): Buffer | undefined => {
  if (!takesFile(agent)) return undefined
  const type = headers['content-type']?.[0]
  const isJson = body.bytes.length > 0 && !isForm(type) && !isMultipart(type)
  return isJson && !hasBodyToken(scheme) ? body.compact().bytes : Buffer.from(textOfValue(payload))
}
