import type { ChildProcess } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import dbus, { type Message, type MessageBus, type Variant } from 'dbus-next'
import { iconFile, type IconName } from '../../../tray/icon/icon.ts'
import { toPixmap } from '../../../tray/sni/pixmap.ts'
import { cleanEnvironment } from '../daemon/daemon.ts'
import { startDisplay } from './display.ts'
import { type NotificationService, type Shown, playNotifications } from './notification-service.ts'
import { end, startBus } from './session-bus.ts'
import { temporaryFolder } from '../temporary.ts'

/*
 * A desktop without pixels: a virtual display and a private session bus, on which this process plays
 * the panel (StatusNotifierWatcher) and the notification service. Nothing touches the real session.
 */

/** A row of the menu as the panel sees it, with `__` and `&&` undone. */
export type ShownRow = {
  readonly id: number
  readonly label: string
  readonly enabled: boolean
  readonly visible: boolean
  readonly rows: readonly ShownRow[]
}

export type ShownNote = {
  readonly app: string
  readonly title: string
  readonly body: string
}

export type Desktop = {
  /** The variables by which a program finds this desktop, and nothing else of the test run. */
  readonly env: Record<string, string>
  /** The process id of the tray program whose icon was registered last. */
  readonly iconProcess: () => Promise<number>
  /** The title of that icon. */
  readonly title: () => Promise<string>
  /** Waits until the icon has a picture, whichever. */
  readonly untilIcon: () => Promise<void>
  /** Waits until the icon is the picture of this state. */
  readonly untilPicture: (name: IconName) => Promise<void>
  /** Waits until the visible rows of the menu fulfil this, and answers them. */
  readonly untilMenu: (is: (rows: readonly ShownRow[]) => boolean) => Promise<readonly ShownRow[]>
  /** Clicks the visible, enabled row with this path of label beginnings. */
  readonly click: (...path: string[]) => Promise<void>
  /** Waits until this many notifications came, and answers all. */
  readonly untilNotes: (count: number) => Promise<readonly ShownNote[]>
  /** The same, with all that came of each. */
  readonly untilShown: (count: number, limitMs?: number) => Promise<readonly Shown[]>
  /** The notification service, to have it do something. */
  readonly notifications: NotificationService
  /** How many icons were registered so far. */
  readonly registrations: () => number
  /** Ends the display alone, or without one the bus, as when a person logs out. */
  readonly endDisplay: () => Promise<void>
  /** Ends the bus alone. */
  readonly endBus: () => Promise<void>
  /** The panel goes, or comes and takes what is registered with it from now on. */
  readonly setPanel: (panel: Panel) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Linux desktops only; elsewhere these tests are not defined. On Linux they are never left out. */
export const describeOnLinux = (title: string, tests: () => void): void => {
  if (process.platform === 'linux') describe(title, tests)
}

/** `watcher-only` keeps the list of icons and has nobody who shows them. */
export type Panel = 'there' | 'absent' | 'watcher-only'

export type DesktopOptions = {
  readonly notifications?: boolean
  /** Without a display the tray shows the icon itself. */
  readonly display?: boolean
  readonly panel?: Panel
}

/** The same tests with systray2's program under a display, and without one, where the tray shows the icon. */
export const describeWithBothPrograms = (
  title: string,
  tests: (program: 'packaged' | 'own') => void,
): void => {
  describeOnLinux(`${title} (packaged program)`, () => tests('packaged'))
  describeOnLinux(`${title} (tray itself)`, () => tests('own'))
}

/** Starts one. Throws with the command that installs what is missing on this machine. */
export const startDesktop = async (options: DesktopOptions = {}): Promise<Desktop> => {
  checkPackages()
  const folder = await temporaryFolder()
  const children: ChildProcess[] = []
  try {
    const display = options.display === false ? undefined : await startDisplay(children)
    const address = await startBus(folder, children)
    const runtime = join(folder, 'runtime')
    await mkdir(runtime, { mode: 0o700 })
    const env = cleanEnvironment({
      HOME: folder,
      ...(display ? { DISPLAY: display } : {}),
      DBUS_SESSION_BUS_ADDRESS: address,
      XDG_RUNTIME_DIR: runtime,
      GTK_A11Y: 'none',
      NO_AT_BRIDGE: '1',
    })
    const bus = dbus.sessionBus({ busAddress: address })
    await once(bus, 'connect')
    const parts = await playPanel(bus, options)
    return {
      ...parts,
      env,
      endDisplay: async () => {
        const [display] = children
        if (display) await end(display)
      },
      endBus: async () => {
        const daemon = children.at(-1)
        if (daemon) await end(daemon)
      },
      stop: async () => {
        bus.disconnect()
        await Promise.all(children.map(end))
      },
    }
  } catch (error) {
    await Promise.all(children.map(end))
    throw error
  }
}

const packages = 'xvfb xauth dbus dbus-daemon libayatana-appindicator3-1 libnotify-bin'

const checkPackages = (): void => {
  const programs = (process.env['PATH'] ?? '').split(delimiter)
  const libraries = ['/usr/lib64', '/usr/lib', ...foldersIn('/usr/lib')]
  const isIn = (folders: string[], name: string) =>
    folders.some((folder) => existsSync(join(folder, name)))
  const missing = [
    ...['Xvfb', 'dbus-daemon', 'notify-send'].filter((name) => !isIn(programs, name)),
    ...['libappindicator3.so.1'].filter((name) => !isIn(libraries, name)),
  ]
  if (missing.length > 0)
    throw new Error(
      `missing ${missing.join(', ')}: sudo apt-get install -y --no-install-recommends ${packages}`,
    )
}

const foldersIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.includes('-linux-gnu'))
    .map((name) => join(folder, name))

type Item = { readonly sender: string; readonly path: string }
type Layout = [number, Record<string, Variant>, Variant<Layout>[]]

const watcherName = 'org.kde.StatusNotifierWatcher'
const menuName = 'com.canonical.dbusmenu'

/** Plays the panel and the notification service on this bus. */
const playPanel = async (bus: MessageBus, options: DesktopOptions) => {
  const news = new EventEmitter()
  const items: Item[] = []
  let panel: Panel = 'absent'

  const call = async (
    message: Pick<Message, 'destination' | 'path' | 'interface' | 'member'> &
      Partial<Pick<Message, 'signature' | 'body'>>,
  ): Promise<unknown[]> => (await bus.call(new dbus.Message(message)))?.body ?? []

  const answer = (message: Message): boolean => {
    const reply = (signature: string, body: unknown[]) => {
      bus.send(dbus.Message.newMethodReturn(message, signature, body))
      return true
    }
    const { interface: name, member, body } = message
    if (name === 'org.freedesktop.DBus.Properties' && message.path === '/StatusNotifierWatcher') {
      const properties = {
        IsStatusNotifierHostRegistered: new dbus.Variant('b', panel === 'there'),
        ProtocolVersion: new dbus.Variant('i', 0),
        RegisteredStatusNotifierItems: new dbus.Variant('as', []),
      }
      if (member === 'GetAll') return reply('a{sv}', [properties])
      return reply('v', [properties[body[1] as keyof typeof properties]])
    }
    if (name === watcherName && member === 'RegisterStatusNotifierItem') {
      const told = String(body[0])
      items.push({
        sender: message.sender,
        path: told.startsWith('/') ? told : '/StatusNotifierItem',
      })
      news.emit('news')
      return reply('', [])
    }
    return false
  }
  const notifications = playNotifications(bus, news)
  bus.addMethodHandler(answer)
  bus.on('message', (message: Message) => {
    if (message.type === dbus.MessageType.SIGNAL) news.emit('news')
  })
  for (const name of [menuName, 'org.kde.StatusNotifierItem'])
    await call({
      destination: 'org.freedesktop.DBus',
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      member: 'AddMatch',
      signature: 's',
      body: [`type='signal',interface='${name}'`],
    })
  const setPanel: Desktop['setPanel'] = async (next) => {
    if (panel !== 'absent' && next === 'absent') await bus.releaseName(watcherName)
    const isNew = panel === 'absent' && next !== 'absent'
    const isHostNew = panel !== 'there' && next === 'there'
    panel = next
    if (isNew) await bus.requestName(watcherName, 0)
    if (isHostNew)
      bus.send(
        dbus.Message.newSignal(
          '/StatusNotifierWatcher',
          watcherName,
          'StatusNotifierHostRegistered',
          '',
          [],
        ),
      )
  }
  await setPanel(options.panel ?? 'there')
  if (options.notifications !== false) await notifications.comeBack()

  /** Reads again after every piece of news until it is as wanted. Throws at the limit with what is there. */
  const until = async <Value>(
    read: () => Promise<Value | undefined>,
    limitMs = 15_000,
  ): Promise<Value> => {
    const limit = AbortSignal.timeout(limitMs)
    for (;;) {
      const change = once(news, 'news', { signal: limit })
      change.catch(() => undefined)
      const value = await read().catch(() => undefined)
      if (value !== undefined) return value
      try {
        await change
      } catch {
        const rows = await readMenu().catch(() => [])
        throw new Error(
          `not seen in ${limitMs / 1000} s; ${items.length} icons were registered, the menu is ${JSON.stringify(labelsOf(rows))}, ${notifications.shown.length} notes came`,
        )
      }
    }
  }

  const property = async (name: string): Promise<string> => {
    const item = items.at(-1)
    if (!item) throw new Error('no icon is registered')
    const [value] = (await call({
      destination: item.sender,
      path: item.path,
      interface: 'org.freedesktop.DBus.Properties',
      member: 'Get',
      signature: 'ss',
      body: ['org.kde.StatusNotifierItem', name],
    })) as [Variant<string>]
    return value.value
  }

  const onMenu = async (member: string, signature: string, body: unknown[]) => {
    const path = await property('Menu')
    const destination = items.at(-1)?.sender ?? ''
    return call({ destination, path, interface: menuName, member, signature, body })
  }

  const readMenu = async (): Promise<readonly ShownRow[]> => {
    const [, layout] = (await onMenu('GetLayout', 'iias', [0, -1, []])) as [number, Layout]
    return rowsOf(layout)
  }

  const untilMenu: Desktop['untilMenu'] = async (is) =>
    until(async () => {
      const rows = await readMenu()
      return is(rows) ? rows : undefined
    })

  const untilShown: Desktop['untilShown'] = async (count, limitMs) =>
    until(
      async () => (notifications.shown.length >= count ? notifications.shown : undefined),
      limitMs,
    )

  return {
    untilMenu,
    click: async (...path: string[]) => {
      // Over the bus even a hidden or disabled row could be clicked; a person cannot do that.
      const row = await until(async () => find(await readMenu(), path))
      // Quit may end the program before it could answer.
      const clicked = onMenu('Event', 'isvu', [row.id, 'clicked', new dbus.Variant('i', 0), 0])
      await clicked.catch((error: unknown) => {
        if (!/disconnected/.test(String(error))) throw error
      })
    },
    title: async () => property('Title'),
    untilIcon: async () => {
      await until(async () => (await property('IconName')) || (await property('IconPixmap')))
    },
    untilPicture: async (name: IconName) => {
      const file = await readFile(iconFile(name))
      await until(async () => {
        // The one program names a file, the other hands out the pixels.
        const shown = await property('IconName')
        if (shown !== '') return (await readFile(shown)).equals(file) || undefined
        const pixmaps = (await property('IconPixmap')) as unknown as [number, number, Uint8Array][]
        return pixmaps.some(([, , argb]) => toPixmap(file).argb.equals(argb)) || undefined
      })
    },
    iconProcess: async () =>
      until(async () => {
        const [pid] = await call({
          destination: 'org.freedesktop.DBus',
          path: '/org/freedesktop/DBus',
          interface: 'org.freedesktop.DBus',
          member: 'GetConnectionUnixProcessID',
          signature: 's',
          body: [items.at(-1)?.sender ?? ''],
        })
        return Number(pid)
      }),
    untilNotes: async (count: number) =>
      (await untilShown(count)).map(({ app, title, body }) => ({ app, title, body })),
    untilShown,
    notifications,
    registrations: () => items.length,
    setPanel,
  }
}

const rowsOf = ([, , children]: Layout): ShownRow[] =>
  children
    .map(({ value }): ShownRow => {
      const [id, properties] = value
      const label = String(properties['label']?.value ?? '')
      return {
        id,
        label: label.replaceAll('__', '_'),
        enabled: properties['enabled']?.value !== false,
        visible: properties['visible']?.value !== false,
        rows: rowsOf(value),
      }
    })
    .filter(({ visible, label }) => visible && label !== '')

const find = (rows: readonly ShownRow[], [first, ...rest]: string[]): ShownRow | undefined => {
  const row = rows.find(({ label, enabled }) => enabled && label.startsWith(first ?? ''))
  return row && rest.length > 0 ? find(row.rows, rest) : row
}

/** The labels of a list of rows, for messages and comparisons. */
export const labelsOf = (rows: readonly ShownRow[]): string[] => rows.map(({ label }) => label)
