import { type Note, toTitle } from './note.ts'
import { type Backend, NotifyFailure, type NotifyFailureKind } from './backend.ts'
import type { Action } from '../view.ts'
import { toLabel } from '../text.ts'
import { upperFirst } from '../wording.ts'
import { withDeadline } from '../../shared/deadline.ts'

/*
 * Sends notifications to the desktop, one after the other. While the service is away or hangs, the newest
 * ones wait, and the first of them is tried again now and then.
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

const mostWaiting = 10

/** Milliseconds; other ones for tests. */
const defaultLimits = { answerMs: 10_000, retryMs: 15_000, stopMs: 1000 }

const shownMs = 15_000
/** A failure asks for a decision, which takes longer. */
const failureShownMs = 60_000

export class Notifier {
  readonly #options: NotifierOptions
  readonly #limits: typeof defaultLimits
  readonly #stopping = new AbortController()
  #waiting: readonly Note[] = []
  #sending: Promise<void> | undefined
  #trouble: NotifyFailureKind | undefined
  #retryTimer: NodeJS.Timeout | undefined

  constructor(options: NotifierOptions, limits = defaultLimits) {
    this.#options = options
    this.#limits = limits
    options.backend.onReturn?.(() => void this.#sendWaiting())
  }

  readonly show = (note: Note): void => {
    this.#enqueue([...this.#waiting, note])
    void this.#sendWaiting()
  }

  /** Drops or closes the note with this key, if the desktop supports that. */
  readonly close = (key: string): void => {
    this.#waiting = this.#waiting.filter((note) => note.key !== key)
    // The note may be the one that is being sent.
    void Promise.resolve(this.#sending).then(async () => this.#options.backend.close?.(key))
  }

  /** In a few words, why notes do not appear at the moment. */
  get trouble(): string | undefined {
    return this.#trouble && reasons[this.#trouble].short
  }

  /** Closes the notes that have buttons, and stops; waits for a hanging service at most `stopMs`. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#retryTimer)
    const stopped = Promise.all([this.#options.backend.stop(), this.#sending])
    await withDeadline(this.#limits.stopMs, stopped, () => undefined)
  }

  /** Keeps the newest notes, and the last of those with the same key. */
  #enqueue(notes: readonly Note[]): void {
    const isReplaced = ({ key }: Note, index: number) =>
      key !== undefined && notes.slice(index + 1).some((later) => later.key === key)
    this.#waiting = notes.filter((note, index) => !isReplaced(note, index)).slice(-mostWaiting)
  }

  async #sendWaiting(): Promise<void> {
    const [next, ...rest] = this.#waiting
    if (this.#sending || !next || this.#stopping.signal.aborted) return
    clearTimeout(this.#retryTimer)
    this.#waiting = rest
    this.#sending = this.#send(next)
    await this.#sending
    this.#sending = undefined
    if (!this.#trouble) return this.#sendWaiting()
    this.#retryTimer = setTimeout(() => void this.#sendWaiting(), this.#limits.retryMs)
  }

  async #send(note: Note): Promise<void> {
    const { backend, iconFor, onAction } = this.#options
    const { signal: stopped } = this.#stopping
    const buttons = note.buttons ?? []
    const notice = {
      title: toTitle(note.subject),
      subject: upperFirst(toLabel(note.subject)),
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
      this.#setTrouble(undefined)
    } catch (error) {
      if (stopped.aborted) return
      this.#enqueue([note, ...this.#waiting])
      this.#setTrouble(error instanceof NotifyFailure ? error.kind : 'refused')
    }
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
