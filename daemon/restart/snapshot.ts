import type { Memory } from '../state.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import type { AcceptedEvent } from '../webhook/accepted-event.ts'
import { copyOfError, errorFrom, type FromOld, type KeptCopy, type MemoryCopy } from './protocol.ts'

/** Copies everything, and tells of every change from now on, until the returned function is called. */
export const shareMemory = (memory: Memory, send: (message: FromOld) => void): (() => void) => {
  send({ kind: 'memory', memory: takeCopy(memory, performance.now()) })
  const unfollow = [
    memory.events.follow(({ record }, detail) => send({ kind: 'event', record, detail })),
    memory.kept.follow((id, event) => send({ kind: 'kept', id, event: keptCopy(event) })),
    memory.deliveries.follow((key, eventId, atMs) =>
      send({ kind: 'delivery', key, eventId, isKnown: atMs !== undefined }),
    ),
    memory.progress.follow((key, reached) => send({ kind: 'progress', key, reached })),
    memory.messages.follow((name) => send({ kind: 'message', name })),
  ]
  return () => {
    for (const leave of unfollow) leave()
  }
}

const takeCopy = (memory: Memory, nowMs: number): MemoryCopy => ({
  events: memory.events.snapshot(),
  counts: memory.counts.entries(),
  kept: memory.kept.entries().map(([id, event]) => [id, keptCopy(event)]),
  deliveries: memory.deliveries.snapshot(nowMs),
  rateLimits: memory.rateLimits
    .entries()
    .map(([webhook, bucket]) => [webhook, bucket, nowMs - bucket.atMs]),
  progress: memory.progress.snapshot(),
  messages: memory.messages.snapshot(),
})

/** Goes on where the other one was; for a memory that has nothing yet. */
const restoreMemory = (memory: Memory, copy: MemoryCopy, nowMs: number): void => {
  memory.events.restore(copy.events)
  for (const [path, counted] of copy.counts) memory.counts.restore(path, counted)
  for (const [id, event] of copy.kept) restoreKept(memory, id, event)
  memory.deliveries.restore(copy.deliveries, nowMs)
  for (const [webhook, bucket, ageMs] of copy.rateLimits)
    memory.rateLimits.restore(webhook, { ...bucket, atMs: nowMs - ageMs })
  memory.progress.restore(copy.progress)
  memory.messages.restore(copy.messages)
}

/** Follows what the other one tells; what is no news of its memory changes nothing. */
export const applyChange = (memory: Memory, message: FromOld, nowMs: number): void => {
  if (message.kind === 'memory') restoreMemory(memory, message.memory, nowMs)
  if (message.kind === 'event') memory.events.put(message.record, message.detail)
  if (message.kind === 'kept') restoreKept(memory, message.id, message.event)
  if (message.kind === 'progress') memory.progress.put(message.key, message.reached)
  if (message.kind === 'message') memory.messages.put(message.name)
  if (message.kind !== 'delivery') return
  if (message.isKnown) memory.deliveries.remember(message.key, message.eventId, nowMs)
  else memory.deliveries.forget(message.key, message.eventId)
}

const keptCopy = ({ webhook, receivedAt, known, targets, delivery }: AcceptedEvent): KeptCopy => {
  const { path, agentName, agent, values } = webhook
  return {
    // Of all that a definition has no more than a retry needs: keys of signatures stay here.
    webhook: { path, agentName, agent, values },
    receivedAt,
    known,
    targets: targets.map((target) =>
      target.kind === 'invalid' ? { ...target, error: copyOfError(target.error) } : target,
    ),
    delivery,
  }
}

const restoreKept = ({ events, kept }: Memory, id: string, copy: KeptCopy): void => {
  const prompt = events.get(id)?.prompt
  if (prompt === undefined) return
  const targets = copy.targets.map((target): ResolvedTarget =>
    target.kind === 'invalid' ? { ...target, error: errorFrom(target.error) } : target,
  )
  kept.keep(id, { ...copy, prompt, targets })
}
