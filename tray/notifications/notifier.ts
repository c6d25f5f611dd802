import type { Note } from './note.ts'
import { type Backend, NotifyFailure, type NotifyFailureKind } from './backend.ts'
import type { Action } from '../action.ts'

/*
 * Takes notes to the desktop, few at a time. A service that is away or hangs holds up nothing else: the
 * newest notes wait for it a while, and it is tried again ever more rarely.
 */

export type Notifier = {
  readonly show: (note: Note) => void
  /** What the note with this key told is no longer so: it goes, where the desktop lets it. */
  readonly takeAway: (key: string) => void
  /** In a few words, why notes do not appear just now. */
  readonly trouble: () => string | undefined
  /** Takes away what has buttons, and ends; a hung service does not hold it up. */
  readonly stop: () => Promise<void>
}

export type NotifierParts = {
  readonly backend: Backend
  /** The picture for a note, by its absolute path. */
  readonly iconFor: (note: Note) => string
  /** What the pressed button of a note asks for. */
  readonly onAction: (action: Action) => void
  /** Notes do not appear, with why and what mends it, or, without a reason, they do again. */
  readonly onTrouble: (reason?: string) => void
}

export type NotifyLimits = {
  readonly inFlight: number
  readonly waiting: number
  /** Older ones are no news any more. */
  readonly waitingMs: number
  readonly answerMs: number
  readonly tryAgainMs: readonly number[]
  readonly stopMs: number
}

const usualLimits: NotifyLimits = {
  inFlight: 2,
  waiting: 10,
  waitingMs: 10 * 60_000,
  answerMs: 10_000,
  tryAgainMs: [5000, 15_000, 60_000],
  stopMs: 1000,
}

const shownMs = 15_000
/** A person has to come to a decision. */
const failureShownMs = 60_000

type Waiting = { readonly note: Note; readonly since: number }

/** A notifier that shows notes by this backend. */
export const desktopNotifier = (
  { backend, iconFor, onAction, onTrouble }: NotifierParts,
  limits: NotifyLimits = usualLimits,
): Notifier => {
  const stopping = new AbortController()
  const inFlight = new Set<Promise<void>>()
  let waiting: Waiting[] = []
  let failures = 0
  let trouble: NotifyFailureKind | undefined
  let timer: NodeJS.Timeout | undefined
  /** Something came that makes another try worth while, and one was still under way. */
  let hasNews = false

  const become = (next: NotifyFailureKind | undefined): void => {
    if (trouble === next) return
    trouble = next
    onTrouble(next && reasons[next].long)
  }

  const send = async (one: Waiting): Promise<void> => {
    const { note } = one
    const buttons = note.buttons ?? []
    const late = AbortSignal.timeout(limits.answerMs)
    const notice = {
      title: note.title,
      body: note.body,
      icon: iconFor(note),
      buttons: buttons.map(({ label }) => label),
      shownMs: note.failure ? failureShownMs : shownMs,
      key: note.key,
    }
    const onPressed = (index: number) => {
      const action = buttons[index]?.action
      if (action && !stopping.signal.aborted) onAction(action)
    }
    try {
      await backend.show(notice, onPressed, AbortSignal.any([late, stopping.signal]))
      failures = 0
      become(undefined)
    } catch (error) {
      if (stopping.signal.aborted) return
      wait([one, ...waiting])
      become(error instanceof NotifyFailure ? error.kind : 'refused')
      const pause = limits.tryAgainMs[Math.min(failures, limits.tryAgainMs.length - 1)]
      failures += 1
      clearTimeout(timer)
      timer = setTimeout(pump, pause)
    }
  }

  /** Keeps the newest, and of those with one key the last. */
  const wait = (notes: readonly Waiting[]): void => {
    const isReplaced = ({ note }: Waiting, index: number) =>
      note.key !== undefined && notes.slice(index + 1).some((later) => later.note.key === note.key)
    waiting = notes.filter((one, index) => !isReplaced(one, index)).slice(-limits.waiting)
  }

  const pump = (): void => {
    hasNews = false
    const now = performance.now()
    waiting = waiting.filter(({ since }) => now - since < limits.waitingMs)
    // In trouble a single one tries the way.
    while (!stopping.signal.aborted && inFlight.size < (trouble ? 1 : limits.inFlight)) {
      const one = waiting.shift()
      if (!one) return
      const sending = send(one).finally(() => {
        inFlight.delete(sending)
        if (!trouble || hasNews) pump()
      })
      inFlight.add(sending)
    }
  }

  backend.onReturn?.(() => {
    const isUnderWay = inFlight.size > 0
    pump()
    hasNews = isUnderWay
  })

  return {
    show: (note) => {
      wait([...waiting, { note, since: performance.now() }])
      pump()
      hasNews = waiting.length > 0
    },
    takeAway: (key) => {
      waiting = waiting.filter(({ note }) => note.key !== key)
      const remove = async () => backend.takeAway?.(key)
      // It may just be on its way.
      void Promise.all(inFlight).then(remove)
    },
    trouble: () => trouble && reasons[trouble].short,
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      const limit = new Promise<void>((resolve) => setTimeout(resolve, limits.stopMs).unref())
      await Promise.race([limit, Promise.all([backend.stop(), ...inFlight])])
    },
  }
}

const noWay = {
  short: 'no notification service',
  long: 'notifications cannot be shown: there is neither a session bus nor notify-send (on Debian and Ubuntu: sudo apt install libnotify-bin)',
}
const reasons: Readonly<Record<NotifyFailureKind, { short: string; long: string }>> = {
  unsuited: noWay,
  'no-program': noWay,
  'no-service': {
    short: 'no notification service',
    long: 'notifications cannot be shown: this desktop runs no notification service',
  },
  refused: {
    short: 'notifications are refused',
    long: 'notifications cannot be shown: the notification service of this desktop refuses them',
  },
  silent: {
    short: 'the notification service hangs',
    long: 'notifications cannot be shown: the notification service of this desktop does not answer',
  },
}
