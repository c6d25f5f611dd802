import { setTimeout as delay } from 'node:timers/promises'
import type { Bus } from '../dbus/bus.ts'

export const watcherName = 'org.kde.StatusNotifierWatcher'
const tries = 5
const againMs = 2000

/**
 * Tells the panel about our icon, now if there is one and whenever one comes: panels are started
 * late and restarted. `name` is the name on the bus that the icon has. Rejects when the bus does.
 */
export const keepRegistered = async (bus: Bus, name: string): Promise<void> => {
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
