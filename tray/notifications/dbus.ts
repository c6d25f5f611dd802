import { BusError } from '../dbus/connect.ts'
import { Bus, type Signal } from '../dbus/bus.ts'
import { variant } from '../dbus/marshal.ts'
import { bodyMarkup, plainText, titleText } from '../text.ts'
import { type Backend, type Notice, NotifyFailure } from './backend.ts'

/*
 * Notes over the session bus (Desktop Notifications Specification 1.2): no text appears in the arguments
 * of a process, buttons work as long as the tray runs, and a note can replace an older one.
 */

const service = {
  destination: 'org.freedesktop.Notifications',
  path: '/org/freedesktop/Notifications',
  interface: 'org.freedesktop.Notifications',
} as const

/** Long, since the first call may start the service. The notifier has its own limit. */
const answerMs = 30_000
const closeMs = 500
const maxOpen = 100

type OpenNote = {
  readonly key: string | undefined
  readonly buttons: number
  readonly onPressed: (button: number) => void
}

type Connection = {
  readonly bus: Bus
  readonly openNotes: Map<number, OpenNote>
  /** Of the current service, once it was asked. */
  features?: Features | undefined
}

type Features = {
  /** The service draws a button for the default action, so the first button would appear twice. */
  readonly drawsDefault: boolean
  /** The service shows the name of the program, which the title then repeats. */
  readonly showsName: boolean
  readonly has: (capability: string) => boolean
}

export const notifyDbus = (env: NodeJS.ProcessEnv = process.env): Backend => {
  let connecting: Promise<Connection> | undefined
  let onReturn: () => void = () => undefined

  const getConnection = async (): Promise<Connection> => {
    connecting ??= connect(
      env,
      () => onReturn(),
      () => {
        connecting = undefined
      },
    )
    try {
      return await connecting
    } catch (error) {
      connecting = undefined
      throw error
    }
  }

  return {
    show: async (notice, onPressed, signal) => {
      try {
        await beforeAbort(
          signal,
          showOn(await beforeAbort(signal, getConnection()), notice, onPressed),
        )
      } catch (error) {
        throw toFailure(error)
      }
    },
    close: async (key) => {
      const connection = await connecting?.catch(() => undefined)
      if (!connection) return
      const { bus, openNotes } = connection
      const ids = [...openNotes].filter(([, note]) => note.key === key).map(([id]) => id)
      await closeAll(bus, ids)
    },
    onReturn: (listener) => {
      onReturn = listener
    },
    stop: async () => {
      const connection = await connecting?.catch(() => undefined)
      if (!connection) return
      const { bus, openNotes } = connection
      const left = [...openNotes].filter(([, { buttons }]) => buttons > 0).map(([id]) => id)
      await closeAll(bus, left)
      bus.close()
    },
  }
}

/** The service confirms each by the signal NotificationClosed. */
const closeAll = async (bus: Bus, ids: readonly number[]): Promise<void> => {
  const close = { ...service, member: 'CloseNotification', signature: 'u', timeoutMs: closeMs }
  await Promise.allSettled(ids.map(async (id) => bus.call({ ...close, body: [id] })))
}

const connect = async (
  env: NodeJS.ProcessEnv,
  onReturn: () => void,
  onEnd: () => void,
): Promise<Connection> => {
  const bus = await Bus.connect(env)
  const openNotes = new Map<number, OpenNote>()
  const connection: Connection = { bus, openNotes }
  let owner: string | undefined
  const forOurNotes =
    (listen: (id: number, body: Signal['body']) => void) =>
    ({ sender, body }: Signal): void => {
      const [id] = body
      if (sender === owner && typeof id === 'number') listen(id, body)
    }
  const pressed = forOurNotes((id, [, key]) => {
    const note = openNotes.get(id)
    const button = key === 'default' ? 0 : Number(key)
    if (note && Number.isInteger(button) && button >= 0 && button < note.buttons) {
      // Only once, whatever the service sends.
      openNotes.delete(id)
      note.onPressed(button)
    }
  })
  const closed = forOurNotes((id) => openNotes.delete(id))
  try {
    const signal = { interface: service.interface, path: service.path }
    await bus.onSignal({ ...signal, member: 'ActionInvoked' }, pressed)
    await bus.onSignal({ ...signal, member: 'NotificationClosed' }, closed)
    await bus.onOwner(service.destination, (next) => {
      if (next === owner) return
      owner = next
      // A new service does not know the notes of the old one.
      openNotes.clear()
      connection.features = undefined
      if (next !== undefined) onReturn()
    })
    void bus.closed.then(onEnd)
    return connection
  } catch (error) {
    bus.close()
    throw error
  }
}

const showOn = async (
  connection: Connection,
  notice: Notice,
  onPressed: (button: number) => void,
): Promise<void> => {
  const { bus, openNotes } = connection
  const { has, drawsDefault, showsName } = (connection.features ??= await readCapabilities(bus))
  const { key, title, subject, body, icon, shownMs } = notice
  const [replacesId = 0] =
    [...openNotes].find(([, note]) => key !== undefined && note.key === key) ?? []
  const buttons = has('actions') ? notice.buttons : []
  const [id] = await bus.call({
    ...service,
    member: 'Notify',
    signature: 'susssasa{sv}i',
    body: [
      'Doorward',
      replacesId,
      icon,
      titleText(showsName ? subject : title),
      has('body-markup') ? bodyMarkup(body) : plainText(body) || ' ',
      buttons.flatMap((label, index) => [
        ...(index === 0 ? ['default', label] : []),
        ...(index === 0 && drawsDefault ? [] : [String(index), label]),
      ]),
      new Map([['urgency', variant('y', 1)]]),
      shownMs,
    ],
    timeoutMs: answerMs,
  })
  if (typeof id !== 'number') throw new BusError('bus-protocol')
  openNotes.delete(id)
  openNotes.set(id, { key, buttons: buttons.length, onPressed })
  const [oldest] = openNotes.keys()
  if (oldest !== undefined && openNotes.size > maxOpen) openNotes.delete(oldest)
}

const readCapabilities = async (bus: Bus): Promise<Features> => {
  const ask = async (member: string) => bus.call({ ...service, member, timeoutMs: answerMs })
  const [[capabilities], [name, , version]] = await Promise.all([
    ask('GetCapabilities'),
    ask('GetServerInformation'),
  ])
  const list = new Set(Array.isArray(capabilities) ? capabilities.map(String) : [])
  return {
    has: (capability) => list.has(capability),
    // Against the specification these draw a button for the default action.
    drawsDefault: /^(?:xfce|lxqt)/i.test(String(name)),
    showsName:
      /^(?:plasma|lxqt)/i.test(String(name)) ||
      (name === 'gnome-shell' && Number.parseInt(String(version), 10) >= 46),
  }
}

/** Throws `silent` when the signal comes first, and ignores the result of the work then. */
const beforeAbort = async <Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> => {
  let onAbort: () => void = () => undefined
  const late = new Promise<never>((_, reject) => {
    onAbort = () => reject(new NotifyFailure('silent'))
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

const toFailure = (error: unknown): unknown => {
  if (!(error instanceof BusError)) return error
  const { code } = error
  // Another backend may still work.
  if (code === 'bus-absent' || code === 'bus-refused')
    return new NotifyFailure('unsuited', { cause: error })
  if (code === 'bus-timeout' || /\.(NoReply|Timeout|TimedOut)$/.test(code))
    return new NotifyFailure('silent', { cause: error })
  if (code === 'bus-closed' || /\.(ServiceUnknown|NameHasNoOwner)$|\.Spawn\./.test(code))
    return new NotifyFailure('no-service', { cause: error })
  return new NotifyFailure('refused', { cause: error })
}
