import { DoorwardError } from '../../../shared/errors.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import { type AcceptedCopy, copyAccepted } from '../../restart/snapshot.ts'
import type { ErrorCopy } from '../../restart/error-copy.ts'
import type { SeenCode } from '../../delivery/sender.ts'
import type { AcceptedEvent } from '../../webhook/events/accepted-event.ts'
import { type Kind, pack, seal, unpack, unseal } from './seal.ts'

/*
 * The messages between doors and workers: all but the id of an event is sealed. What only the door needs, such as the targets, is in a ticket that it seals for itself; the worker sends it back with
 * the answer, so that also a door that has lost its memory can deliver, and so that nobody can answer what it
 * was not given.
 */

/** What a worker is asked. */
export type Run = Pick<
  AcceptedEvent,
  'prompt' | 'known' | 'payload' | 'workspace' | 'context' | 'receivedAt'
> & {
  readonly id: string
  readonly door: string
  /** Another for each time that an event is published. */
  readonly run: string
  readonly path: string
  readonly agent: string
  readonly eventText: AcceptedEvent['webhook']['values']['eventText']
  /** What the prompt was made for. */
  readonly kind: Agent['kind']
  readonly ticket: Buffer
}

/** What a worker answers: a text, or why there is none. */
export type Outcome = {
  readonly machine: string
  readonly attempt: number
  readonly queuedMs: number
  readonly agentMs: number
  readonly text: string | undefined
  readonly detail: string
  readonly seen: SeenCode | undefined
  readonly error: ErrorCopy | undefined
  /** With an error: for a door that has lost its memory. */
  readonly prompt: string | undefined
}

export type Done = { readonly id: string; readonly outcome: Outcome; readonly ticket: Buffer }

/** Those of all machines, the one that seals first. */
type Keys = readonly Buffer[]

const none = Buffer.alloc(0)

const toJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const parse = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

const sealWith = ([key]: Keys, kind: Kind, id: string, plain: Buffer): Buffer => {
  if (key) return seal(key, kind, id, plain)
  throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
    localDetail: 'the key of the queue is missing',
  })
}

/** A message of an event: its id, a sealed part, and more. Undefined where no key opens it. */
const open = (bytes: Uint8Array, kind: Kind, keys: Keys) => {
  const [first = none, sealed = none, ticket = none] = unpack(bytes)
  const id = first.toString()
  const plain = unseal(keys, kind, id, sealed)
  return plain && { id, plain, ticket }
}

export const writeRun = (
  { id, door, run }: Pick<Run, 'id' | 'door' | 'run'>,
  event: AcceptedEvent,
  keys: Keys,
  doorKey: Buffer,
): Buffer => {
  const { webhook, receivedAt, known, prompt, payload, workspace, context } = event
  const { path, agentName: agent, values, agent: made } = webhook
  const rest = { path, agent, known, prompt, workspace, context, receivedAt }
  const request = { door, run, ...rest, eventText: values.eventText, kind: made.kind }
  const sealed = sealWith(keys, 'run', id, pack(toJson(request), payload ?? none))
  const ticket = copyAccepted({ ...event, payload: undefined, coalesced: undefined })
  return pack(Buffer.from(id), sealed, seal(doorKey, 'ticket', id, toJson(ticket)))
}

export const readRun = (bytes: Uint8Array, keys: Keys): Run | undefined => {
  const opened = open(bytes, 'run', keys)
  if (!opened) return undefined
  const { id, plain, ticket } = opened
  const [request = none, file = none] = unpack(plain)
  const run = parse(request) as Omit<Run, 'id' | 'ticket' | 'payload'> | undefined
  const payload = file.length > 0 ? file : undefined
  return run && { ...run, id, ticket, payload, receivedAt: new Date(run.receivedAt) }
}

export const writeDone = ({ id, outcome, ticket }: Done, keys: Keys): Buffer => {
  const { text, ...rest } = outcome
  const plain = pack(toJson(rest), Buffer.from(text ?? ''))
  return pack(Buffer.from(id), sealWith(keys, 'done', id, plain), ticket)
}

export const readDone = (bytes: Uint8Array, keys: Keys): Done | undefined => {
  const opened = open(bytes, 'done', keys)
  if (!opened) return undefined
  const { id, plain, ticket } = opened
  const [rest = none, text = none] = unpack(plain)
  const outcome = parse(rest) as Omit<Outcome, 'text'> | undefined
  return (
    outcome && {
      id,
      ticket,
      outcome: { ...outcome, text: outcome.error ? undefined : text.toString() },
    }
  )
}

/** Undefined for a ticket that this door has not made for this event. */
export const readTicket = (
  ticket: Buffer,
  id: string,
  doorKey: Buffer,
): AcceptedCopy | undefined => {
  const plain = unseal([doorKey], 'ticket', id, ticket)
  const copy = plain && (parse(plain) as AcceptedCopy | undefined)
  return copy && { ...copy, receivedAt: new Date(copy.receivedAt) }
}

/** A short message: what a machine does, or that an event is cancelled. */
export const writeNote = (kind: Kind, id: string, value: object, keys: Keys): Buffer =>
  pack(Buffer.from(id), sealWith(keys, kind, id, toJson(value)))

/** Undefined where no key opens it. */
export const readNote = (
  kind: Kind,
  bytes: Uint8Array,
  keys: Keys,
): { readonly id: string; readonly value: unknown } | undefined => {
  const opened = open(bytes, kind, keys)
  return opened && { id: opened.id, value: parse(opened.plain) }
}
