import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { bodyArgument, notAnOption, plainText, titleText } from '../text.ts'
import { type Backend, type Notice, NotifyFailure } from './backend.ts'

/*
 * The only file that knows node-notifier, which shows notifications on macOS and Windows, and by
 * notify-send on a Linux without a session bus. notify-send takes text that begins with `-` for an
 * option, and the library never calls back while the notification service hangs: this file finds and
 * ends the programs that the library starts.
 */

type Options = Readonly<Record<string, string | number | boolean>>
type Library = {
  readonly notify: (options: Options, callback: (error: unknown) => void) => unknown
}

const programs = /notify-send|terminal-notifier|snoretoast|notifu/i

/** Shows notifications by node-notifier, without buttons. */
export const nodeNotifier = (platform: NodeJS.Platform = process.platform): Backend => {
  let library: Library | undefined
  const children = new Set<ChildProcess>()
  const onChild = (message: unknown): void => {
    const { process: child } = message as { process: ChildProcess }
    children.add(child)
    child.once('exit', () => children.delete(child)).once('error', () => children.delete(child))
  }
  const endChildren = (): void => {
    for (const child of children)
      if (programs.test(child.spawnargs.join(' '))) child.kill('SIGKILL')
  }
  // The library does not expose the processes that it starts.
  subscribe('child_process', onChild)

  return {
    show: async (notice, _, signal) => {
      library ??= load(platform)
      const shown = call(library, toOptions(notice, platform))
      const late = once(signal, 'abort').then(() => {
        endChildren()
        throw new NotifyFailure('silent')
      })
      late.catch(() => undefined)
      await Promise.race([shown, late])
    },
    stop: async () => {
      unsubscribe('child_process', onChild)
      endChildren()
    },
  }
}

/** The options of node-notifier for a notification; no text can become an option or markup. */
export const toOptions = (
  { title, body, icon, shownMs }: Pick<Notice, 'title' | 'body' | 'icon' | 'shownMs'>,
  platform: NodeJS.Platform,
): Options => {
  if (platform === 'darwin' || platform === 'win32')
    return {
      title: notAnOption(plainText(title)),
      message: notAnOption(plainText(body) || ' '),
      icon,
      // Otherwise the library has terminal-notifier wait ten seconds for a click. That looks like a hanging
      // service, and the notification would be shown again (node-notifier, lib/utils.js).
      ...(platform === 'darwin' && { timeout: false }),
    }
  return {
    title: notAnOption(titleText(title)),
    message: notAnOption(bodyArgument(body)),
    icon,
    // Only notify-send knows these two; `timeout` is in seconds.
    'app-name': 'Doorward',
    timeout: shownMs / 1000,
  }
}

/** Loads the library; on Linux only the part that runs notify-send. */
const load = (platform: NodeJS.Platform): Library => {
  const require = createRequire(import.meta.url)
  if (platform === 'darwin' || platform === 'win32') return require('node-notifier') as Library
  const NotifySend = require('node-notifier/notifiers/notifysend') as new (options: {
    suppressOsdCheck: boolean
  }) => Library
  // The check would cache for ever that notify-send is missing.
  return new NotifySend({ suppressOsdCheck: true })
}

const call = async (library: Library, options: Options): Promise<void> => {
  await new Promise<void>((resolve, reject) => {
    library.notify(options, (error) => {
      if (!error) return resolve()
      const isMissing = /not found|ENOENT/.test(String(error))
      reject(new NotifyFailure(isMissing ? 'no-program' : 'no-service'))
    })
  })
}
