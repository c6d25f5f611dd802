/** One note for the desktop. Title and body are plain text; each backend escapes them as needed. */
export type Notice = {
  /** Begins with our name. */
  readonly title: string
  /** The title without our name. */
  readonly subject: string
  readonly body: string
  /** The absolute path of a picture. */
  readonly icon: string
  /** The labels; a click on the note itself presses the first. */
  readonly buttons: readonly string[]
  /** How long to show it, where the desktop respects that. */
  readonly shownMs: number
  /** Replaces an open note with the same key. */
  readonly key?: string | undefined
}

export type Backend = {
  /**
   * Resolves when the desktop has accepted the note. `onPressed` gets the index of the button that is
   * pressed, at most once. Throws `NotifyFailure`, also when the signal aborts it.
   */
  readonly show: (
    notice: Notice,
    onPressed: (button: number) => void,
    signal: AbortSignal,
  ) => Promise<void>
  /** Closes the note with this key if it is open. Never throws. */
  readonly close?: (key: string) => Promise<void>
  /** Sets a listener for the appearance of a notification service, where the backend can detect it. */
  readonly onReturn?: (listener: () => void) => void
  /** Closes notes with buttons, which no longer work, and stops running programs. */
  readonly stop: () => Promise<void>
}

/** `unsuited`: this backend does not work on this machine, another may. */
export type NotifyFailureKind = 'unsuited' | 'no-program' | 'no-service' | 'refused' | 'silent'

/** Why a note was not shown. Used only inside the tray. */
export class NotifyFailure extends Error {
  override readonly name = 'NotifyFailure'
  readonly kind: NotifyFailureKind

  constructor(kind: NotifyFailureKind, options?: ErrorOptions) {
    super(`the note was not shown: ${kind}`, options)
    this.kind = kind
  }
}

/** Shows by `preferred`, and by `fallback` while this machine has no use for `preferred`. */
export const withFallback = (preferred: Backend, fallback: Backend): Backend => ({
  ...preferred,
  show: async (notice, onPressed, signal) => {
    try {
      await preferred.show(notice, onPressed, signal)
    } catch (error) {
      if (!(error instanceof NotifyFailure) || error.kind !== 'unsuited') throw error
      await fallback.show(notice, onPressed, signal)
    }
  },
  stop: async () => void (await Promise.all([preferred.stop(), fallback.stop()])),
})
