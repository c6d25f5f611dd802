import { BusError } from './connect.ts'
import type { Message } from './message.ts'
import type { Variant } from './marshal.ts'

/** One method, with the signatures of its arguments and results. `run` may throw `BusError`. */
export type ServedMethod = {
  readonly takes: string
  readonly gives: string
  readonly run: (body: readonly unknown[], sender: string) => readonly unknown[]
}

/** One interface of an object. Properties are read-only and read again for each request. */
export type ServedInterface = {
  readonly methods: Readonly<Record<string, ServedMethod>>
  readonly properties: Readonly<Record<string, () => Variant>>
}

/** The interfaces of an object by name. */
export type ServedObject = Readonly<Record<string, ServedInterface>>

const propertiesName = 'org.freedesktop.DBus.Properties'

/**
 * Calls a method, also of the standard interfaces Peer and Properties. Panels know the interfaces that they
 * use, so there is no introspection. Returns signature and values of the reply. Throws `BusError` with the D-Bus name of the error.
 */
export const answerCall = (
  object: ServedObject,
  call: Message,
): { signature: string; body: readonly unknown[] } => {
  const all: ServedObject = { ...object, ...standard(object) }
  const { interface: name, member = '', sender = '' } = call
  const candidates = name === undefined ? Object.values(all) : [own(all, name)]
  const method = candidates.map((found) => found && own(found.methods, member)).find(Boolean)
  if (!method) throw new BusError('org.freedesktop.DBus.Error.UnknownMethod')
  if ((call.signature ?? '') !== method.takes)
    throw new BusError('org.freedesktop.DBus.Error.InvalidArgs')
  return { signature: method.gives, body: method.run(call.body ?? [], sender) }
}

const standard = (object: ServedObject): ServedObject => ({
  'org.freedesktop.DBus.Peer': only({ Ping: { takes: '', gives: '', run: () => [] } }),
  [propertiesName]: only({
    Get: {
      takes: 'ss',
      gives: 'v',
      run: ([name, property]) => {
        const read = own(getProperties(object, name), String(property))
        if (!read) throw new BusError('org.freedesktop.DBus.Error.UnknownProperty')
        return [read()]
      },
    },
    GetAll: {
      takes: 's',
      gives: 'a{sv}',
      run: ([name]) => {
        const entries = Object.entries(getProperties(object, name))
        return [new Map(entries.map(([property, read]) => [property, read()]))]
      },
    },
    Set: {
      takes: 'ssv',
      gives: '',
      run: () => {
        throw new BusError('org.freedesktop.DBus.Error.PropertyReadOnly')
      },
    },
  }),
})

const only = (methods: ServedInterface['methods']): ServedInterface => ({
  methods,
  properties: {},
})

const getProperties = (object: ServedObject, name: unknown): ServedInterface['properties'] => {
  const found = own(object, String(name))
  if (!found) throw new BusError('org.freedesktop.DBus.Error.UnknownInterface')
  return found.properties
}

/** Names come from other programs, so only own properties count. */
const own = <Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined
