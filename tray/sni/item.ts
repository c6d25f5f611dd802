import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { errorName } from '../../shared/errors.ts'
import { Bus } from '../dbus/bus.ts'
import { variant } from '../dbus/marshal.ts'
import type { ServedObject } from '../dbus/served-object.ts'
import { type Icon, noDesktopError, type TrayState } from '../icon/systray.ts'
import type { Row } from '../menu.ts'
import { menuInterface, MenuObject } from './menu.ts'
import { halved, type Pixmap, toPixmap } from './pixmap.ts'

/*
 * The icon by the tray itself, where the program of systray2 cannot run: StatusNotifierItem over the
 * session bus needs no GTK, X server or x86-64 processor.
 * https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/
 */

const itemInterface = 'org.kde.StatusNotifierItem'
const watcherName = 'org.kde.StatusNotifierWatcher'
const itemPath = '/StatusNotifierItem'
const menuPath = '/MenuBar'
const maxTries = 5
const retryMs = 2000

/** Shows the state by an icon of this process. Throws `tray-no-display` without a session bus. */
export const startStatusNotifier = async (
  state: TrayState,
  onClick: (row: Row) => void,
): Promise<Icon> => {
  const bus = await Bus.connect().catch(() => undefined)
  if (!bus) throw noDesktopError('there is no session bus')
  let shown = state
  // Plasma reads a submenu when it opens, and places it before it knows its size: off screen. It reads one
  // that has changed at once; the signal must follow the answer.
  const menu = new MenuObject(state.rows, onClick, (submenus) =>
    queueMicrotask(() => {
      for (const id of submenus) bus.emit(menuPath, menuInterface, 'LayoutUpdated', 'ui', [1, id])
    }),
  )
  bus.serve(menuPath, menu.object)
  bus.serve(
    itemPath,
    createItem(() => shown),
  )
  try {
    const name = `${itemInterface}-${process.pid}-1`
    await keepRegistered(bus, (await bus.ownName(name)) ? name : bus.name)
  } catch {
    bus.close()
    throw noDesktopError('there is no session bus')
  }
  return {
    show: (next) => {
      const changes = menu.show(next.rows)
      if (changes)
        bus.emit(menuPath, menuInterface, 'ItemsPropertiesUpdated', changes.signature, changes.body)
      const isSame = next.icon === shown.icon && next.tooltip === shown.tooltip
      shown = next
      if (isSame) return
      bus.emit(itemPath, itemInterface, 'NewIcon', '', [])
      bus.emit(itemPath, itemInterface, 'NewToolTip', '', [])
    },
    ended: bus.closed.then(() => 'the session bus has ended'),
    stop: async () => {
      bus.close()
      await bus.closed
    },
  }
}

/**
 * Registers the icon, which has this name on the bus, with the current panel and with every later one:
 * panels start late and restart. Rejects when the bus does.
 */
const keepRegistered = async (bus: Bus, name: string): Promise<void> => {
  let current: string | undefined
  await bus.onOwner(watcherName, (owner) => {
    current = owner
    if (owner) void register(bus, name, () => current === owner)
  })
}

/** Retries, since a new panel may not answer yet. */
const register = async (bus: Bus, name: string, isCurrent: () => boolean): Promise<void> => {
  for (let count = 0; count < maxTries && isCurrent(); count += 1) {
    try {
      await bus.call({
        destination: watcherName,
        path: '/StatusNotifierWatcher',
        interface: watcherName,
        member: 'RegisterStatusNotifierItem',
        signature: 's',
        body: [name],
      })
      return
    } catch {
      await delay(retryMs, undefined, { ref: false })
    }
  }
}

const pixmaps = new Map<string, readonly Pixmap[]>()

/** An icon file in its size and half of it; empty when it cannot be read. */
const readPixmaps = (icon: string): readonly Pixmap[] => {
  const known = pixmaps.get(icon)
  if (known) return known
  let read: readonly Pixmap[] = []
  try {
    const whole = toPixmap(readFileSync(icon))
    const half = halved(whole)
    read = half ? [half, whole] : [whole]
  } catch (error) {
    process.stderr.write(`doorward tray: the icon cannot be shown: ${errorName(error)}\n`)
  }
  pixmaps.set(icon, read)
  return read
}

const nothing = { takes: 'ii', gives: '', run: () => [] } as const

const createItem = (getShown: () => TrayState): ServedObject => {
  const pictures = (list: readonly Pixmap[]) =>
    variant(
      'a(iiay)',
      list.map(({ width, height, argb }) => [width, height, argb]),
    )
  const text = (value: string) => () => variant('s', value)
  return {
    [itemInterface]: {
      // Without Activate every panel opens the menu on a click: some take an empty answer as done, or
      // wait for a second click, whatever ItemIsMenu says.
      methods: {
        SecondaryActivate: nothing,
        ContextMenu: nothing,
        Scroll: { takes: 'is', gives: '', run: () => [] },
      },
      properties: {
        Category: text('ApplicationStatus'),
        Id: text('doorward'),
        Title: text('Doorward'),
        Status: text('Active'),
        WindowId: () => variant('i', 0),
        IconName: text(''),
        IconPixmap: () => pictures(readPixmaps(getShown().icon)),
        OverlayIconName: text(''),
        OverlayIconPixmap: () => pictures([]),
        AttentionIconName: text(''),
        AttentionIconPixmap: () => pictures([]),
        AttentionMovieName: text(''),
        IconThemePath: text(''),
        ToolTip: () => variant('(sa(iiay)ss)', ['', [], getShown().tooltip, '']),
        ItemIsMenu: () => variant('b', true),
        Menu: () => variant('o', menuPath),
      },
    },
  }
}
