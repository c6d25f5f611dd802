import type { Note } from './note.ts'
import { type Backend, NotifyFailure, type NotifyFailureKind } from './backend.ts'
import type { Action } from '../action.ts'

/*
 * Sends notifications to the desktop, a few at a time. While the service is away or hangs, the newest
 * ones wait for a while, and the service is tried again at growing intervals.
 */

export type NotifierOptions = {
  readonly backend: Backend
  /** The absolute path of the picture for a note. */
  readonly iconFor: (note: Note) => string
  /** Called with the action of a button that was pressed. */
  readonly onAction: (action: Action) => void
  /** Called with why notes do not appear and how to fix it, and without a reason when they do again. */
  readonly onTrouble: (reason?: string) => void
}

export type NotifierLimits = {
  readonly inFlight: number
  readonly waiting: number
  /** Older notes are dropped. */
  readonly waitingMs: number
  readonly answerMs: number
  readonly retryMs: readonly number[]
  readonly stopMs: number
}

const defaultLimits: NotifierLimits = {
  inFlight: 2,
  waiting: 10,
  waitingMs: 10 * 60_000,
  answerMs: 10_000,
  retryMs: [5000, 15_000, 60_000],
  stopMs: 1000,
}

const shownMs = 15_000
/** A failure asks for a decision, which takes longer. */
const failureShownMs = 60_000

type Waiting = { readonly note: Note; readonly since: number }

export class Notifier {
  readonly #options: NotifierOptions
  readonly #limits: NotifierLimits
  readonly #stopping = new AbortController()
  readonly #inFlight = new Set<Promise<void>>()
  #waiting: readonly Waiting[] = []
  #failures = 0
  #trouble: NotifyFailureKind | undefined
  #retryTimer: NodeJS.Timeout | undefined
  /** Try again right after the attempt in progress, even if it fails. */
  #retrySoon = false

  constructor(options: NotifierOptions, limits: NotifierLimits = defaultLimits) {
    this.#options = options
    this.#limits = limits
    options.backend.onReturn?.(() => {
      const isSending = this.#inFlight.size > 0
      this.#sendWaiting()
      this.#retrySoon = isSending
    })
  }

  readonly show = (note: Note): void => {
    this.#enqueue([...this.#waiting, { note, since: performance.now() }])
    this.#sendWaiting()
    this.#retrySoon = this.#waiting.length > 0
  }

  /** Drops or closes the note with this key, if the desktop supports that. */
  readonly close = (key: string): void => {
    this.#waiting = this.#waiting.filter(({ note }) => note.key !== key)
    // The note may be one of those being sent.
    void Promise.all(this.#inFlight).then(async () => this.#options.backend.close?.(key))
  }

  /** In a few words, why notes do not appear at the moment. */
  get trouble(): string | undefined {
    return this.#trouble && reasons[this.#trouble].short
  }

  /** Closes the notes that have buttons, and stops; waits for a hanging service at most `stopMs`. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#retryTimer)
    const limit = new Promise<void>((resolve) => setTimeout(resolve, this.#limits.stopMs).unref())
    await Promise.race([limit, Promise.all([this.#options.backend.stop(), ...this.#inFlight])])
  }

  /** Keeps the newest notes, and the last of those with the same key. */
  #enqueue(notes: readonly Waiting[]): void {
    const isReplaced = ({ note }: Waiting, index: number) =>
      note.key !== undefined && notes.slice(index + 1).some((later) => later.note.key === note.key)
    this.#waiting = notes
      .filter((entry, index) => !isReplaced(entry, index))
      .slice(-this.#limits.waiting)
  }

  #sendWaiting(): void {
    this.#retrySoon = false
    const oldest = performance.now() - this.#limits.waitingMs
    this.#waiting = this.#waiting.filter(({ since }) => since > oldest)
    // While the service fails, one note at a time tests whether it works again.
    const maxInFlight = this.#trouble ? 1 : this.#limits.inFlight
    while (!this.#stopping.signal.aborted && this.#inFlight.size < maxInFlight) {
      const [next, ...rest] = this.#waiting
      if (!next) return
      this.#waiting = rest
      const sending = this.#send(next).finally(() => {
        this.#inFlight.delete(sending)
        if (!this.#trouble || this.#retrySoon) this.#sendWaiting()
      })
      this.#inFlight.add(sending)
    }
  }

  async #send(entry: Waiting): Promise<void> {
    const { note } = entry
    const { backend, iconFor, onAction } = this.#options
    const { signal: stopped } = this.#stopping
    const buttons = note.buttons ?? []
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
      if (action && !stopped.aborted) onAction(action)
    }
    const late = AbortSignal.timeout(this.#limits.answerMs)
    try {
      await backend.show(notice, onPressed, AbortSignal.any([late, stopped]))
      this.#failures = 0
      this.#setTrouble(undefined)
    } catch (error) {
      if (stopped.aborted) return
      this.#enqueue([entry, ...this.#waiting])
      this.#setTrouble(error instanceof NotifyFailure ? error.kind : 'refused')
      this.#retryLater()
    }
  }

  #retryLater(): void {
    const { retryMs } = this.#limits
    const pauseMs = retryMs[Math.min(this.#failures, retryMs.length - 1)]
    this.#failures += 1
    clearTimeout(this.#retryTimer)
    this.#retryTimer = setTimeout(() => this.#sendWaiting(), pauseMs)
  }

  #setTrouble(trouble: NotifyFailureKind | undefined): void {
    if (this.#trouble === trouble) return
    this.#trouble = trouble
    this.#options.onTrouble(trouble && reasons[trouble].long)
  }
}

const noBackend = {
  short: 'no notification service',
  long: 'notifications cannot be shown: there is no session bus and no notify-send (Debian, Ubuntu: sudo apt install libnotify-bin)',
}
const reasons: Readonly<Record<NotifyFailureKind, { short: string; long: string }>> = {
  unsuited: noBackend,
  'no-program': noBackend,
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
