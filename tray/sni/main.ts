import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { errorName, systemCode } from '../../shared/errors.ts'
import { Bus } from '../dbus/bus.ts'
import { itemInterface, itemObject, type ShownAppearance } from './item.ts'
import { menuInterface, MenuObject } from './menu.ts'
import { halved, toPixmap } from './pixmap.ts'
import { clickedLine, type Appearance, type Order, parseOrder, readyLine } from './protocol.ts'

const watcherName = 'org.kde.StatusNotifierWatcher'
const tries = 5
const againMs = 2000

/**
 * Tells the panel about our icon, now if there is one and whenever one comes: panels are started
 * late and restarted. `name` is the name on the bus that the icon has. Rejects when the bus does.
 */
const keepRegistered = async (bus: Bus, name: string): Promise<void> => {
  let current: string | undefined
  await bus.onOwner(watcherName, (owner) => {
    current = owner
    if (owner) void register(bus, name, () => current === owner)
  })
}

/** A panel that has just come may not answer yet. */
const register = async (bus: Bus, name: string, isCurrent: () => boolean): Promise<void> => {
  for (let count = 0; count < tries && isCurrent(); count += 1) {
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
      await delay(againMs)
    }
  }
}

/* oxlint-disable no-underscore-dangle -- names of systray2 */

/*
 * A tray program of our own, in place of systray2's: it speaks StatusNotifierItem over the session
 * bus and needs neither GTK nor an X server nor an x86-64 processor. systray2 starts it and talks to
 * it as to its own. Nothing here belongs to the tray process.
 */

const itemPath = '/StatusNotifierItem'
const menuPath = '/MenuBar'

const bus = await Bus.connect().catch((error: unknown) => {
  process.stderr.write(`no session bus: ${systemCode(error) ?? 'unknown reason'}\n`)
  process.exit(1)
})
void bus.closed.then(() => {
  process.stderr.write('no session bus: it has ended\n')
  process.exit(1)
})

let face: ShownAppearance = { pixmaps: [], tooltip: '' }
let menu: MenuObject | undefined
const changed = new Set<number>()

const take = ({ icon, tooltip }: Appearance): void => {
  try {
    const pixmap = toPixmap(icon)
    const half = halved(pixmap)
    face = { pixmaps: half ? [half, pixmap] : [pixmap], tooltip }
  } catch (error) {
    process.stderr.write(`the icon cannot be shown: ${errorName(error)}\n`)
  }
}

/** One signal for all rows that changed at a time. */
const tell = (): void => {
  if (!menu || changed.size === 0) return
  const { signature, body } = menu.changes([...changed])
  changed.clear()
  bus.emit(menuPath, menuInterface, 'ItemsPropertiesUpdated', signature, body)
}

const begin = async (first: Extract<Order, { do: 'show-menu' }>): Promise<void> => {
  take(first.face)
  menu = new MenuObject(first.items, (id) => process.stdout.write(clickedLine(id)))
  bus.serve(menuPath, menu.object)
  bus.serve(
    itemPath,
    itemObject(menuPath, () => face),
  )
  const name = `${itemInterface}-${process.pid}-1`
  await keepRegistered(bus, (await bus.ownName(name)) ? name : bus.name)
}

const obey = (order: Order | undefined): void => {
  if (!order) return
  switch (order.do) {
    case 'show-menu':
      // A bus that dies meanwhile ends the program above.
      if (!menu) begin(order).catch(() => undefined)
      return
    case 'show-face':
      take(order.face)
      bus.emit(itemPath, itemInterface, 'NewIcon', '', [])
      return bus.emit(itemPath, itemInterface, 'NewToolTip', '', [])
    case 'show-item':
      if (!menu?.change(order.item)) return
      if (changed.size === 0) setImmediate(tell)
      changed.add(order.item.__id)
      return
    case 'exit':
      process.exit(0)
  }
}

// Whoever started us has gone when its end of a pipe closes.
process.stdout.on('error', () => process.exit(0))
createInterface({ input: process.stdin })
  .on('line', (line) => obey(parseOrder(line)))
  .on('close', () => process.exit(0))
process.stdout.write(readyLine)
