/** One note on its way to the desktop. Title and body are plain text; each way escapes as it must. */
export type Notice = {
  readonly title: string
  readonly body: string
  /** A picture, by its absolute path. */
  readonly icon: string
  /** In their order; a click on the note itself presses the first. */
  readonly buttons: readonly string[]
  /** How long to show it, where the desktop goes by that. */
  readonly shownMs: number
  /** A notice with the same key takes the place of this one, if it is still there. */
  readonly key?: string | undefined
}

/** A way to show notes on the desktop. */
export type Backend = {
  /**
   * Resolves when the desktop has taken it; `onPressed` hears the index of the button, once, later or
   * never. Throws `NotifyFailure`, also when the signal ends it first.
   */
  readonly show: (
    notice: Notice,
    onPressed: (button: number) => void,
    signal: AbortSignal,
  ) => Promise<void>
  /** Takes the notice with this key away, if it is still there. Throws nothing. */
  readonly close?: (key: string) => Promise<void>
  /** Is told whenever the notification service has come, where this way hears of that. */
  readonly onReturn?: (listener: () => void) => void
  /** Takes away what has buttons, since nobody hears them any more, and ends what still runs. */
  readonly stop: () => Promise<void>
}

/** `unsuited`: this way cannot be gone on this machine, another may. */
export type NotifyFailureKind = 'unsuited' | 'no-program' | 'no-service' | 'refused' | 'silent'

/** Why a note was not shown. Met only inside the tray. */
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
