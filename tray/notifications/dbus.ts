import { BusError } from '../dbus/connect.ts'
import { Bus, type Signal } from '../dbus/bus.ts'
import { variant } from '../dbus/marshal.ts'
import { bodyMarkup, plainText, titleText } from '../text.ts'
import { type Backend, type Notice, NotifyFailure } from './backend.ts'

/*
 * Notes over the session bus (Desktop Notifications Specification 1.2): nothing of them stands in the
 * arguments of a process, the buttons work as long as the tray runs, and a note can take the place of
 * an older one.
 */

const service = {
  destination: 'org.freedesktop.Notifications',
  path: '/org/freedesktop/Notifications',
  interface: 'org.freedesktop.Notifications',
} as const

/** The service may be started by the first call to it. The notifier has a limit of its own. */
const answerMs = 30_000
const closeMs = 500
const maxVisible = 100

type Visible = {
  readonly key: string | undefined
  readonly buttons: number
  readonly onPressed: (button: number) => void
}

type Connection = {
  readonly bus: Bus
  readonly visible: Map<number, Visible>
  /** Of the service that runs now, once it was asked. */
  abilities?: Abilities | undefined
}

type Abilities = {
  /** A click on the note itself presses the first button, so that is there twice. */
  readonly drawsDefault: boolean
  readonly has: (capability: string) => boolean
}

/** Shows notes over the session bus of the environment. */
export const notifyDbus = (env: NodeJS.ProcessEnv = process.env): Backend => {
  let connecting: Promise<Connection> | undefined
  let onReturn: () => void = () => undefined

  const connection = async (): Promise<Connection> => {
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
        await beforeEnd(signal, showOn(await beforeEnd(signal, connection()), notice, onPressed))
      } catch (error) {
        throw toFailure(error)
      }
    },
    close: async (key) => {
      const made = await connecting?.catch(() => undefined)
      if (!made) return
      const { bus, visible } = made
      const ids = [...visible].filter(([, note]) => note.key === key).map(([id]) => id)
      await closeAll(bus, ids)
    },
    onReturn: (listener) => {
      onReturn = listener
    },
    stop: async () => {
      const made = await connecting?.catch(() => undefined)
      if (!made) return
      const { bus, visible } = made
      const left = [...visible].filter(([, { buttons }]) => buttons > 0).map(([id]) => id)
      await closeAll(bus, left)
      bus.close()
    },
  }
}

/** The service says of each that it is closed. */
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
  const visible = new Map<number, Visible>()
  const made: Connection = { bus, visible }
  let owner: string | undefined
  const ofOurs =
    (listen: (id: number, body: Signal['body']) => void) =>
    ({ sender, body }: Signal): void => {
      const [id] = body
      if (sender === owner && typeof id === 'number') listen(id, body)
    }
  const pressed = ofOurs((id, [, key]) => {
    const note = visible.get(id)
    const button = key === 'default' ? 0 : Number(key)
    if (note && Number.isInteger(button) && button >= 0 && button < note.buttons) {
      // One press, whatever the service sends.
      visible.delete(id)
      note.onPressed(button)
    }
  })
  const closed = ofOurs((id) => visible.delete(id))
  try {
    const signal = { interface: service.interface, path: service.path }
    await bus.onSignal({ ...signal, member: 'ActionInvoked' }, pressed)
    await bus.onSignal({ ...signal, member: 'NotificationClosed' }, closed)
    await bus.onOwner(service.destination, (next) => {
      if (next === owner) return
      owner = next
      // Another service knows nothing of them.
      visible.clear()
      made.abilities = undefined
      if (next !== undefined) onReturn()
    })
    void bus.closed.then(onEnd)
    return made
  } catch (error) {
    bus.close()
    throw error
  }
}

const showOn = async (
  made: Connection,
  notice: Notice,
  onPressed: (button: number) => void,
): Promise<void> => {
  const { bus, visible } = made
  const { has, drawsDefault } = (made.abilities ??= await readCapabilities(bus))
  const { key, title, body, icon, shownMs } = notice
  const [before = 0] = [...visible].find(([, note]) => key !== undefined && note.key === key) ?? []
  const buttons = has('actions') ? notice.buttons : []
  const [id] = await bus.call({
    ...service,
    member: 'Notify',
    signature: 'susssasa{sv}i',
    body: [
      'Doorward',
      before,
      icon,
      titleText(title),
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
  visible.delete(id)
  visible.set(id, { key, buttons: buttons.length, onPressed })
  const [oldest] = visible.keys()
  if (oldest !== undefined && visible.size > maxVisible) visible.delete(oldest)
}

const readCapabilities = async (bus: Bus): Promise<Abilities> => {
  const ask = async (member: string) => bus.call({ ...service, member, timeoutMs: answerMs })
  const [[capabilities], [name]] = await Promise.all([
    ask('GetCapabilities'),
    ask('GetServerInformation'),
  ])
  const list = new Set(Array.isArray(capabilities) ? capabilities.map(String) : [])
  return {
    has: (capability) => list.has(capability),
    // It draws a button for the click on the note itself, against the specification.
    drawsDefault: /^xfce/i.test(String(name)),
  }
}

/** Throws `silent` when the signal comes first; what it waited for is not heard any more. */
const beforeEnd = async <Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> => {
  let end: () => void = () => undefined
  const late = new Promise<never>((_, reject) => {
    end = () => reject(new NotifyFailure('silent'))
    if (signal.aborted) end()
    signal.addEventListener('abort', end)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

const toFailure = (error: unknown): unknown => {
  if (!(error instanceof BusError)) return error
  const { code } = error
  // Another way may still know how to reach a bus.
  if (code === 'bus-absent' || code === 'bus-refused')
    return new NotifyFailure('unsuited', { cause: error })
  if (code === 'bus-timeout' || /\.(NoReply|Timeout|TimedOut)$/.test(code))
    return new NotifyFailure('silent', { cause: error })
  if (code === 'bus-closed' || /\.(ServiceUnknown|NameHasNoOwner)$|\.Spawn\./.test(code))
    return new NotifyFailure('no-service', { cause: error })
  return new NotifyFailure('refused', { cause: error })
}
