import type { EventEmitter } from 'node:events'
import dbus, { type Message, type MessageBus, type Variant } from 'dbus-next'

/*
 * A notification service for tests (Desktop Notifications Specification 1.2): it records what it is
 * asked to show, and does with it what a person or a bad day would do.
 */

/** One notification as it came over the bus; `hints` without their types. */
export type Shown = {
  /** As answered to the sender: a replaced one has the id of the one before. */
  readonly id: number
  readonly app: string
  /** The id that this one takes the place of, or 0. */
  readonly replaces: number
  readonly icon: string
  readonly title: string
  readonly body: string
  readonly buttons: readonly { readonly key: string; readonly label: string }[]
  readonly hints: Readonly<Record<string, unknown>>
  /** Milliseconds, or -1. */
  readonly timeout: number
}

export type NotificationService = {
  /** Everything that came, replaced ones too. */
  readonly shown: readonly Shown[]
  /** The ids that senders asked to take away. */
  readonly closed: readonly number[]
  /** Presses a button of a notification, as a person would: it goes away then. */
  readonly press: (shown: Shown, key: string) => void
  /** Calls itself so from now on, with this version. */
  readonly goBy: (name: string, version?: string) => void
  /** What it says from now on that it can do. */
  readonly can: (...capabilities: string[]) => void
  /** Takes calls from now on and never answers them. */
  readonly hang: () => void
  /** Answers again; what came meanwhile stays without an answer. */
  readonly recover: () => void
  /** Refuses from now on what it is asked to show. */
  readonly refuse: () => void
  readonly leave: () => Promise<void>
  readonly comeBack: () => Promise<void>
}

const name = 'org.freedesktop.Notifications'
const path = '/org/freedesktop/Notifications'

/** Plays the service on this bus, and says `news` at each call. It has no name before `comeBack`. */
export const playNotifications = (bus: MessageBus, news: EventEmitter): NotificationService => {
  const shown: Shown[] = []
  const closed: number[] = []
  let capabilities = ['body', 'body-markup', 'actions']
  let ownName = 'test'
  let ownVersion = '1'
  let mode: 'well' | 'hung' | 'refusing' = 'well'
  let lastId = 0

  const signal = (member: string, signature: string, body: unknown[]) =>
    bus.send(dbus.Message.newSignal(path, name, member, signature, body))
  const close = (id: number, reason: number) => signal('NotificationClosed', 'uu', [id, reason])

  const answers: Record<string, (body: unknown[]) => [signature: string, body: unknown[]]> = {
    GetServerInformation: () => ['ssss', [ownName, 'doorward', ownVersion, '1.2']],
    GetCapabilities: () => ['as', [capabilities]],
    CloseNotification: ([id]) => {
      closed.push(Number(id))
      close(Number(id), 3)
      return ['', []]
    },
    Notify: (body) => {
      const replaces = Number(body[1])
      lastId = Math.max(lastId, replaces)
      const id = replaces === 0 ? (lastId += 1) : replaces
      shown.push(shownOf(body, id))
      return ['u', [id]]
    },
  }

  bus.addMethodHandler((message: Message) => {
    const answer = message.interface === name ? answers[message.member] : undefined
    if (!answer) return false
    if (mode === 'refusing' && message.member === 'Notify') {
      bus.send(refusalOf(message))
      news.emit('news')
      return true
    }
    const [signature, body] = answer(message.body)
    if (mode !== 'hung') bus.send(dbus.Message.newMethodReturn(message, signature, body))
    news.emit('news')
    return true
  })

  return {
    shown,
    closed,
    press: ({ id }, key) => {
      signal('ActionInvoked', 'us', [id, key])
      close(id, 2)
    },
    goBy: (next, version = '1') => {
      ownName = next
      ownVersion = version
    },
    can: (...next) => {
      capabilities = next
    },
    hang: () => {
      mode = 'hung'
    },
    recover: () => {
      mode = 'well'
    },
    refuse: () => {
      mode = 'refusing'
    },
    leave: async () => void (await bus.releaseName(name)),
    comeBack: async () => void (await bus.requestName(name, 0)),
  }
}

/** The types of the library take the serial for a text. */
const refusalOf = (message: Message): Message =>
  new dbus.Message({
    type: dbus.MessageType.ERROR,
    replySerial: message.serial as unknown as string,
    destination: message.sender,
    errorName: `${name}.Error.Refused`,
    signature: 's',
    body: ['not now'],
  })

const shownOf = (body: unknown[], id: number): Shown => {
  const [app, replaces, icon, title, text, actions, hints, timeout] = body as [
    string,
    number,
    string,
    string,
    string,
    string[],
    Record<string, Variant>,
    number,
  ]
  const buttons = actions.flatMap((key, index) =>
    index % 2 === 0 ? [{ key, label: actions[index + 1] ?? '' }] : [],
  )
  const plainHints = Object.entries(hints).map(([key, { value }]) => [key, value] as const)
  return {
    id,
    app,
    replaces,
    icon,
    title,
    body: text,
    buttons,
    hints: Object.fromEntries(plainHints),
    timeout,
  }
}
