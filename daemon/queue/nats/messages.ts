import { z } from 'zod'
import { networkModes, usageSchema } from '../../../shared/api/api.ts'
import type { ErrorCode } from '../../../shared/errors.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import {
  type AcceptedEvent,
  type EventOnWire,
  fromWire,
  toWire,
} from '../../webhook/events/accepted-event.ts'
import { unavailable } from './broker.ts'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/*
 * What travels between machines is sealed with AES-256-GCM: the broker sees no prompt and no answer. What a
 * sealed text is, and of which event, is authenticated with it, so it cannot be used as another.
 */

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** The kind of message that a text is sealed as. */
type Kind = 'run' | 'held' | 'done' | 'ticket' | 'progress' | 'cancel' | 'machine'

export const seal = (key: Buffer, kind: Kind, id: string, plain: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce)
  cipher.setAAD(Buffer.from(`${kind} ${id}`))
  const sealed = [cipher.update(plain), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
}

/** Tries each key; undefined where none of them has sealed this for that kind and id. */
export const unseal = (
  keys: readonly Buffer[],
  kind: Kind,
  id: string,
  sealed: Buffer,
): Buffer | undefined => {
  if (sealed.length < nonceBytes + tagBytes) return undefined
  for (const key of keys) {
    const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes))
    decipher.setAAD(Buffer.from(`${kind} ${id}`))
    decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes))
    try {
      const plain = decipher.update(sealed.subarray(nonceBytes + tagBytes))
      return Buffer.concat([plain, decipher.final()])
    } catch {
      // Another key.
    }
  }
  return undefined
}

/** Joins parts to one message, each after its length. */
export const pack = (...parts: readonly Uint8Array[]): Buffer =>
  Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )

/** More than any message has: a message of 8 MB could have two million empty parts. */
const maxParts = 4

/** The parts of a message; a damaged one gives fewer. */
export const unpack = (bytes: Uint8Array): Buffer[] => {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const parts: Buffer[] = []
  for (let at = 0; at + 4 <= all.length && parts.length < maxParts;) {
    const end = at + 4 + all.readUInt32BE(at)
    if (end > all.length) break
    parts.push(all.subarray(at + 4, end))
    at = end
  }
  return parts
}

/*
 * The messages between receivers and workers: all but the id of an event is sealed. What only the receiver needs, such
 * as the targets, is in a ticket that it seals for itself; the worker sends it back with the answer, so that
 * also a receiver that has lost its memory can deliver, and so that no machine answers what it was not given.
 */

/** The question to a worker. */
export type Run = Pick<
  AcceptedEvent,
  'prompt' | 'known' | 'payload' | 'paths' | 'workspace' | 'context' | 'receivedAt' | 'session'
> & {
  readonly id: string
  /** The id of the receiver; workers of older versions know this name. */
  readonly door: string
  /** Another for each time that an event is published. */
  readonly run: string
  readonly path: string
  readonly agent: string
  readonly eventText: AcceptedEvent['webhook']['values']['eventText']
  /** What the prompt was made for. */
  readonly kind: Agent['kind']
  readonly runLimit?: AcceptedEvent['webhook']['runLimit']
  readonly allowSecrets?: AcceptedEvent['webhook']['allowSecrets']
  readonly ticket: Buffer
}

/*
 * What other machines say, as far as this one knows it: they may have another version, or an intruder.
 */

const progressSchema = z.object({
  /** Of `Run`: the same machine may run an event twice. */
  run: z.string().max(100),
  machine: z.string().max(100),
  attempt: z.int().min(1),
  queuedMs: z.number(),
})
/** What a worker says while it runs an event. */
export type Progress = z.infer<typeof progressSchema>

const word = z.string().max(200)
const runInputOfOther = z.object({
  promptSize: z.int().optional(),
  context: z
    .array(z.object({ name: word, bytes: z.int(), leftOut: word.nullable() }))
    .max(20)
    .optional(),
  sandbox: z
    .object({
      kind: word,
      network: z.enum(networkModes),
      refused: z.array(word).max(20).optional(),
    })
    .nullable()
    .optional()
    // Workers of older versions say it in another way.
    .catch(undefined),
  usage: z.object(usageSchema.shape).optional().catch(undefined),
  session: z
    .object({
      key: word,
      turn: z.int(),
      state: z.enum(['new', 'resumed', 'anew']),
      why: word.optional(),
    })
    .optional()
    .catch(undefined),
})

const outcomeSchema = progressSchema.extend({
  agentMs: z.number(),
  detail: z.string(),
  /** Workers of older versions do not say it. */
  had: runInputOfOther.optional().catch(undefined),
  /** A commit would be on the other machine. */
  seen: z
    .object({
      head: z.string(),
      leftOut: z.array(z.string().max(200)).max(10).readonly().optional(),
      notRead: z.array(z.string().max(5000)).max(50).readonly().optional(),
    })
    .optional(),
  error: z
    .object({
      code: z.custom<ErrorCode>((code) => typeof code === 'string'),
      message: z.string(),
      hint: z.string().optional(),
      localDetail: z.string().optional(),
      /** The provider becomes part of a command for the owner. */
      about: z
        .object({
          provider: z
            .string()
            .regex(/^[\w.@-]{1,100}$/)
            .optional(),
        })
        .optional()
        .catch(undefined),
    })
    .optional(),
  /** With an error: for a receiver that has lost its memory. */
  prompt: z.string().optional(),
})
/** What a worker answers: a text, or why there is none. */
export type Outcome = z.infer<typeof outcomeSchema> & { readonly text: string | undefined }

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
  throw unavailable('the key of the queue is missing')
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
  receiverKey: Buffer,
): Buffer => {
  const { webhook, receivedAt, known, prompt, payload, paths, workspace, context, session } = event
  const { path, agentName: agent, values, agent: made } = webhook
  const rest = { path, agent, known, prompt, paths, workspace, context, session, receivedAt }
  const request = {
    door,
    run,
    ...rest,
    eventText: values.eventText,
    kind: made.kind,
    runLimit: webhook.runLimit,
    allowSecrets: webhook.allowSecrets,
  }
  const sealed = sealWith(keys, 'run', id, pack(toJson(request), payload ?? none))
  const copy = toWire({ ...event, payload: undefined, coalesced: undefined })
  const ticket = { ...copy, madeAt: Date.now() }
  return pack(Buffer.from(id), sealed, seal(receiverKey, 'ticket', id, toJson(ticket)))
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

/** What a message of an event has in the clear: its id, and the ticket, which only its receiver opens. */
export const readEnvelope = (
  bytes: Uint8Array,
): { readonly id: string; readonly ticket: Buffer } | undefined => {
  const [id, , ticket] = unpack(bytes)
  return id && ticket && { id: id.toString(), ticket }
}

export const readDone = (bytes: Uint8Array, keys: Keys): Done | undefined => {
  const opened = open(bytes, 'done', keys)
  if (!opened) return undefined
  const { id, plain, ticket } = opened
  const [rest = none, text = none] = unpack(plain)
  const { data } = outcomeSchema.safeParse(parse(rest))
  return (
    data && { id, ticket, outcome: { ...data, text: data.error ? undefined : text.toString() } }
  )
}

/** A run waits for a day at most, and so does its answer. */
const ticketMs = 3 * 86_400_000

/**
 * Undefined for a ticket that this receiver has not made for this event, or that is old: a program that can
 * write to the broker could have an answer delivered again.
 */
export const readTicket = (
  ticket: Buffer,
  id: string,
  receiverKey: Buffer,
): EventOnWire | undefined => {
  const plain = unseal([receiverKey], 'ticket', id, ticket)
  return plain && parseCopy(plain)
}

const parseCopy = (plain: Buffer) => {
  type Copy = EventOnWire & Pick<AcceptedEvent, 'detail'> & { readonly madeAt: number }
  const copy = parse(plain) as Copy | undefined
  if (!copy || Date.now() - copy.madeAt > ticketMs) return undefined
  return { ...copy, receivedAt: new Date(copy.receivedAt) }
}

/** An event that waits at the broker for its own receiver, which alone can open it. */
export const writeHeld = (id: string, event: AcceptedEvent, receiverKey: Buffer): Buffer => {
  const { prompt, payload, detail } = event
  const copy = { ...toWire({ ...event, payload: undefined }), detail, madeAt: Date.now() }
  const plain = pack(toJson(copy), Buffer.from(prompt), payload ?? none)
  return pack(Buffer.from(id), seal(receiverKey, 'held', id, plain))
}

/** Undefined as for a ticket. */
export const readHeld = (
  bytes: Uint8Array,
  receiverKey: Buffer,
): { readonly id: string; readonly event: AcceptedEvent } | undefined => {
  const opened = open(bytes, 'held', [receiverKey])
  if (!opened) return undefined
  const { id, plain } = opened
  const [first = none, prompt = none, file = none] = unpack(plain)
  const copy = parseCopy(first)
  const payload = file.length > 0 ? file : undefined
  return (
    copy && { id, event: { ...fromWire(copy, prompt.toString()), detail: copy.detail, payload } }
  )
}

/** A short message: what a machine does, or that an event is cancelled. */
export const writeNote = (kind: Kind, id: string, value: object, keys: Keys): Buffer =>
  pack(Buffer.from(id), sealWith(keys, kind, id, toJson(value)))

export const readProgress = (
  bytes: Uint8Array,
  keys: Keys,
): { readonly id: string; readonly progress: Progress } | undefined => {
  const { id = '', value } = readNote('progress', bytes, keys) ?? {}
  const { data } = progressSchema.safeParse(value)
  return data && { id, progress: data }
}

/** Undefined where no key opens it. */
export const readNote = (
  kind: Kind,
  bytes: Uint8Array,
  keys: Keys,
): { readonly id: string; readonly value: unknown } | undefined => {
  const opened = open(bytes, kind, keys)
  return opened && { id: opened.id, value: parse(opened.plain) }
}
