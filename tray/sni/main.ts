/* oxlint-disable no-underscore-dangle -- names of systray2 */
import { createInterface } from 'node:readline'
import { nameOf, systemCode } from '../../shared/errors.ts'
import { connectBus } from '../dbus/bus.ts'
import { type ShownFace, itemInterface, itemObject } from './item-object.ts'
import { type MenuObject, menuInterface, menuObject } from './menu-object.ts'
import { halved, pixmapOf } from './pixmap.ts'
import { type Face, type Order, clickedLine, orderOf, readyLine } from './protocol.ts'
import { keepRegistered } from './register.ts'

/*
 * A tray program of our own, in place of systray2's: it speaks StatusNotifierItem over the session
 * bus and needs neither GTK nor an X server nor an x86-64 processor. systray2 starts it and talks to
 * it as to its own. Nothing here belongs to the tray process.
 */

const itemPath = '/StatusNotifierItem'
const menuPath = '/MenuBar'

const bus = await connectBus().catch((error: unknown) => {
  process.stderr.write(`no session bus: ${systemCode(error) ?? 'unknown reason'}\n`)
  process.exit(1)
})
void bus.closed.then(() => {
  process.stderr.write('no session bus: it has ended\n')
  process.exit(1)
})

let face: ShownFace = { pixmaps: [], tooltip: '' }
let menu: MenuObject | undefined
const changed = new Set<number>()

const take = ({ icon, tooltip }: Face): void => {
  try {
    const pixmap = pixmapOf(icon)
    const half = halved(pixmap)
    face = { pixmaps: half ? [half, pixmap] : [pixmap], tooltip }
  } catch (error) {
    process.stderr.write(`the icon cannot be shown: ${nameOf(error)}\n`)
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
  menu = menuObject(first.items, (id) => process.stdout.write(clickedLine(id)))
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
  .on('line', (line) => obey(orderOf(line)))
  .on('close', () => process.exit(0))
process.stdout.write(readyLine)
