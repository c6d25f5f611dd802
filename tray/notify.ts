import { createRequire } from 'node:module'
import { plainText } from './label.ts'
import type { Note } from './note.ts'

/*
 * The one file that knows node-notifier. On Linux it runs notify-send, which has habits of its own: a
 * text that begins with `-` is taken for an option, `<` and `&` in a body are markup, and while the
 * notification service hangs it never returns.
 */

type Options = Readonly<Record<string, string | number | boolean>>
type Backend = {
  readonly notify: (options: Options, callback: (error: unknown) => void) => unknown
}

export type Notifier = {
  readonly show: (note: Note) => void
  /** Resolves when nothing is on its way any more; a hung service does not hold it up. */
  readonly idle: () => Promise<void>
}

const maxInFlight = 2
const maxWaiting = 10
const answerLimitMs = 10_000

/**
 * A notifier that shows notes with the icon file for each, at most 2 at a time. `onTrouble` hears, once each,
 * that there is no notification service or that it hangs; the notes are then lost and nothing else.
 */
export const desktopNotifier = (
  iconFor: (note: Note) => string,
  onTrouble: (reason: string) => void,
): Notifier => {
  let backend: Backend | undefined
  const waiting: Note[] = []
  const inFlight = new Set<Promise<void>>()
  const told = new Set<string>()
  const tell = (reason: string): void => {
    if (told.has(reason)) return
    told.add(reason)
    onTrouble(reason)
  }

  const send = async (note: Note): Promise<void> => {
    const late = setTimeout(
      () => tell('the notification service does not answer'),
      answerLimitMs,
    ).unref()
    try {
      // A stuck notify-send keeps its place: two of them are enough.
      backend ??= loadBackend()
      await call(backend, optionsOf(note, iconFor(note), process.platform))
      told.clear()
    } catch {
      tell('notifications cannot be shown: on Debian and Ubuntu, sudo apt install libnotify-bin')
    } finally {
      clearTimeout(late)
    }
  }

  const pump = (): void => {
    while (inFlight.size < maxInFlight && waiting.length > 0) {
      const note = waiting.shift()
      if (!note) return
      const sending = send(note).finally(() => {
        inFlight.delete(sending)
        pump()
      })
      inFlight.add(sending)
    }
  }

  return {
    show: (note) => {
      waiting.push(note)
      if (waiting.length > maxWaiting) waiting.shift()
      pump()
    },
    idle: async () => {
      const limit = new Promise<void>((resolve) => setTimeout(resolve, 1000).unref())
      await Promise.race([limit, Promise.all(inFlight)])
    },
  }
}

/** What node-notifier is given for a note: nothing in it can become an option or markup. */
export const optionsOf = (note: Note, icon: string, platform: NodeJS.Platform): Options => {
  const linux = platform !== 'darwin' && platform !== 'win32'
  const message = plainText(note.body) || ' '
  return {
    title: notAnOption(linux ? lookAlikes(plainText(note.title)) : plainText(note.title)),
    message: notAnOption(linux ? escapeMarkup(message) : message),
    icon,
    // Only notify-send has it; the others would take it for something else.
    ...(linux ? { 'app-name': 'Doorward', timeout: 15 } : {}),
  }
}

const notAnOption = (text: string): string => (text.startsWith('-') ? ` ${text}` : text)

const escapeMarkup = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** By the specification a title is plain text, but some services read markup in it all the same. */
const lookAlikes = (text: string): string =>
  text.replaceAll('&', '＆').replaceAll('<', '‹').replaceAll('>', '›')

/** Loaded at the first note; on Linux only the part that runs notify-send. */
const loadBackend = (): Backend => {
  const require = createRequire(import.meta.url)
  if (process.platform === 'darwin' || process.platform === 'win32')
    return require('node-notifier') as Backend
  const NotifySend = require('node-notifier/notifiers/notifysend') as new (options: {
    suppressOsdCheck: boolean
  }) => Backend
  // The check would remember for ever that notify-send is missing.
  return new NotifySend({ suppressOsdCheck: true })
}

const call = async (backend: Backend, options: Options): Promise<void> => {
  await new Promise<void>((resolve, reject) => {
    backend.notify(options, (error) => {
      if (error) reject(new Error('the notification was refused'))
      else resolve()
    })
  })
}
