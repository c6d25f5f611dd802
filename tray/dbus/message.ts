import { BusError } from './connect.ts'
import { readValues, type Variant, variant, writeValues } from './marshal.ts'

/** The kinds of message and their numbers on the wire. */
export const messageTypes = { call: 1, reply: 2, error: 3, signal: 4 } as const
export type MessageType = keyof typeof messageTypes

export type Message = {
  readonly type: MessageType
  readonly serial: number
  /** The sender of a call wants no reply. */
  readonly noReply?: boolean | undefined
  readonly path?: string | undefined
  readonly interface?: string | undefined
  readonly member?: string | undefined
  readonly errorName?: string | undefined
  readonly replySerial?: number | undefined
  readonly destination?: string | undefined
  readonly sender?: string | undefined
  readonly signature?: string | undefined
  readonly body?: readonly unknown[] | undefined
}

/** Header fields: number on the wire, name here, type (D-Bus specification, "Header Fields"). */
const fields = [
  [1, 'path', 'o'],
  [2, 'interface', 's'],
  [3, 'member', 's'],
  [4, 'errorName', 's'],
  [5, 'replySerial', 'u'],
  [6, 'destination', 's'],
  [7, 'sender', 's'],
  [8, 'signature', 'g'],
] as const
const headerSignature = 'yyyyuua(yv)'
const noReplyFlag = 1
/** Far more than any menu; the bus itself allows 128 MiB. */
const maxLength = 16 * 1024 * 1024

/** Throws `bus-protocol` when the body does not fit the signature. */
export const encodeMessage = (message: Message): Buffer => {
  const body = writeValues(message.signature ?? '', message.body ?? [])
  const given = fields.flatMap(([code, name, type]) => {
    const value = message[name]
    return value === undefined || value === '' ? [] : [[code, variant(type, value)]]
  })
  const header = writeValues(headerSignature, [
    'l'.charCodeAt(0),
    messageTypes[message.type],
    message.noReply ? noReplyFlag : 0,
    1,
    body.length,
    message.serial,
    given,
  ])
  const length = header.length + body.length + padding(header.length)
  if (length > maxLength) throw new BusError('bus-protocol', 'a message is too long for the bus')
  return Buffer.concat([header, Buffer.alloc(padding(header.length)), body])
}

/** The length of the first message; undefined while its header is incomplete. Throws `bus-protocol`. */
export const lengthOfMessage = (bytes: Buffer): number | undefined => {
  if (bytes.length < 16) return undefined
  const little = isLittle(bytes)
  const body = little ? bytes.readUInt32LE(4) : bytes.readUInt32BE(4)
  const header = 16 + (little ? bytes.readUInt32LE(12) : bytes.readUInt32BE(12))
  const length = header + padding(header) + body
  if (length > maxLength) throw new BusError('bus-protocol', 'a message on the bus is too long')
  return length
}

/** Decodes one whole message; undefined for an unknown kind, which receivers must ignore. */
export const decodeMessage = (bytes: Buffer): Message | undefined => {
  const little = isLittle(bytes)
  const { values, length } = readValues(headerSignature, bytes, little)
  const [, typeNumber, flags, , , serial, list] = values as [
    number,
    number,
    number,
    number,
    number,
    number,
    [number, Variant][],
  ]
  const type = typeNames.get(typeNumber)
  if (!type) return undefined
  const found: Record<string, unknown> = {}
  for (const [code, { signature, value }] of list) {
    const [, name, expected] = fields.find(([known]) => known === code) ?? []
    if (!name) continue
    if (signature !== expected)
      throw new BusError('bus-protocol', `header field ${name} is damaged`)
    found[name] = value
  }
  const message: Message = { ...found, type, serial, noReply: (flags & noReplyFlag) !== 0 }
  const body = bytes.subarray(length + padding(length))
  return { ...message, body: readValues(message.signature ?? '', body, little).values }
}

const typeNames: ReadonlyMap<number, MessageType> = new Map(
  Object.entries(messageTypes).map(([name, code]) => [code, name as MessageType]),
)

const isLittle = (bytes: Buffer): boolean => {
  if (bytes[0] === 'l'.charCodeAt(0)) return true
  if (bytes[0] === 'B'.charCodeAt(0)) return false
  throw new BusError('bus-protocol', 'the bus sent something that is not a message')
}

/** The body begins at a multiple of 8. */
const padding = (length: number): number => (8 - (length % 8)) % 8
