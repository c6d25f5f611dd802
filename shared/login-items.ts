import { DoorwardError } from './errors.ts'
import type { Home } from './home.ts'

/** Whether the tray of a home starts when its person logs in, and the way to change that. */
export type LoginItem = {
  readonly isOn: () => Promise<boolean>
  readonly turnOn: () => Promise<string[]>
  readonly turnOff: () => Promise<string[]>
}

/** Not known on this system yet: every question is refused, and the tray does not offer it. */
export const trayAtLogin = ({ root }: Home): LoginItem => {
  const refuse = async (): Promise<never> => {
    throw new DoorwardError('tray-failed', `the tray of ${root} cannot be started at login here`)
  }
  return { isOn: refuse, turnOn: refuse, turnOff: refuse }
}
