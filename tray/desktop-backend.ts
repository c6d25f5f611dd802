import { nodeNotifier } from './node-notifier.ts'
import { type Backend, firstSuited } from './notify-backend.ts'
import { notifyDbus } from './notify-dbus.ts'
import { notifySend } from './notify-send.ts'

/** How notes are shown on this system: on Linux with buttons, where there is a way to have them. */
export const desktopBackend = (platform: NodeJS.Platform = process.platform): Backend =>
  platform === 'darwin' || platform === 'win32'
    ? nodeNotifier(platform)
    : firstSuited([notifyDbus(), notifySend(), nodeNotifier(platform)])
