/* oxlint-disable no-underscore-dangle -- names of systray2 */
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { errorName, systemCode } from '../../shared/errors.ts'
import { Bus } from '../dbus/bus.ts'
import { variant } from '../dbus/marshal.ts'
import type { ServedInterface, ServedObject } from '../dbus/served-object.ts'
import { menuInterface, MenuObject } from './menu.ts'
import { halved, type Pixmap, toPixmap } from './pixmap.ts'
import { type Appearance, clickedLine, type Order, parseOrder, readyLine } from './protocol.ts'

/*
 * Our own tray program, in place of that of systray2: it speaks StatusNotifierItem over the session bus
 * and needs no GTK, X server or x86-64 processor. systray2 starts it and talks to it as to its own. It
 * is a process apart from the tray.
 */

const watcherName = 'org.kde.StatusNotifierWatcher'
const itemPath = '/StatusNotifierItem'
const menuPath = '/MenuBar'
const maxTries = 5
const retryMs = 2000

const bus = await Bus.connect().catch((error: unknown) => {
  process.stderr.write(`no session bus: ${systemCode(error) ?? 'unknown reason'}\n`)
  process.exit(1)
})
void bus.closed.then(() => {
  process.stderr.write('no session bus: it has ended\n')
  process.exit(1)
})

let shown: { readonly pixmaps: readonly Pixmap[]; readonly tooltip: string } = {
  pixmaps: [],
  tooltip: '',
}
let menu: MenuObject | undefined
const changedRows = new Set<number>()

const execute = (order: Order | undefined): void => {
  if (!order) return
  switch (order.do) {
    case 'show-menu':
      // When the bus dies, `bus.closed` exits.
      if (!menu) begin(order).catch(() => undefined)
      return
    case 'show-icon':
      setAppearance(order.appearance)
      bus.emit(itemPath, itemInterface, 'NewIcon', '', [])
      return bus.emit(itemPath, itemInterface, 'NewToolTip', '', [])
    case 'show-item':
      if (!menu?.change(order.item)) return
      if (changedRows.size === 0) setImmediate(emitChanges)
      changedRows.add(order.item.__id)
      return
    case 'exit':
      process.exit(0)
  }
}

const begin = async (order: Extract<Order, { do: 'show-menu' }>): Promise<void> => {
  setAppearance(order.appearance)
  menu = new MenuObject(order.items, (id) => process.stdout.write(clickedLine(id)))
  bus.serve(menuPath, menu.object)
  bus.serve(itemPath, createItem())
  const name = `${itemInterface}-${process.pid}-1`
  await keepRegistered((await bus.ownName(name)) ? name : bus.name)
}

const setAppearance = ({ icon, tooltip }: Appearance): void => {
  try {
    const pixmap = toPixmap(icon)
    const half = halved(pixmap)
    shown = { pixmaps: half ? [half, pixmap] : [pixmap], tooltip }
  } catch (error) {
    process.stderr.write(`the icon cannot be shown: ${errorName(error)}\n`)
  }
}

/** Emits one signal for all rows that changed together. */
const emitChanges = (): void => {
  if (!menu || changedRows.size === 0) return
  const { signature, body } = menu.changes([...changedRows])
  changedRows.clear()
  bus.emit(menuPath, menuInterface, 'ItemsPropertiesUpdated', signature, body)
}

/**
 * Registers the icon, which has this name on the bus, with the current panel and with every later one:
 * panels start late and restart. Rejects when the bus does.
 */
const keepRegistered = async (name: string): Promise<void> => {
  let current: string | undefined
  await bus.onOwner(watcherName, (owner) => {
    current = owner
    if (owner) void register(name, () => current === owner)
  })
}

/** Retries, since a new panel may not answer yet. */
const register = async (name: string, isCurrent: () => boolean): Promise<void> => {
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
      await delay(retryMs)
    }
  }
}

/*
 * The icon as `org.kde.StatusNotifierItem`.
 * https://www.freedesktop.org/wiki/Specifications/StatusNotifierItem/
 */

const itemInterface = 'org.kde.StatusNotifierItem'

const nothing = { takes: 'ii', gives: '', run: () => [] } as const

const createItem = (): ServedObject => {
  const pictures = (pixmaps: readonly Pixmap[]) =>
    variant(
      'a(iiay)',
      pixmaps.map(({ width, height, argb }) => [width, height, argb]),
    )
  const text = (value: string) => () => variant('s', value)
  const served: ServedInterface = {
    // ItemIsMenu makes any click open the menu, so these do nothing.
    methods: {
      Activate: nothing,
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
      IconPixmap: () => pictures(shown.pixmaps),
      OverlayIconName: text(''),
      OverlayIconPixmap: () => pictures([]),
      AttentionIconName: text(''),
      AttentionIconPixmap: () => pictures([]),
      AttentionMovieName: text(''),
      IconThemePath: text(''),
      ToolTip: () => variant('(sa(iiay)ss)', ['', [], shown.tooltip, '']),
      ItemIsMenu: () => variant('b', true),
      Menu: () => variant('o', menuPath),
    },
    signals: { NewIcon: '', NewToolTip: '', NewTitle: '', NewStatus: 's' },
  }
  return { [itemInterface]: served }
}

// A closed pipe means that the tray has exited.
process.stdout.on('error', () => process.exit(0))
createInterface({ input: process.stdin })
  .on('line', (line) => execute(parseOrder(line)))
  .on('close', () => process.exit(0))
process.stdout.write(readyLine)
