import type { EventChange } from './event-record.ts'

const maxChanges = 1000

/**
 * The newest changes of events, for clients that reconnect with `Last-Event-ID`. Records nothing until
 * the first client follows: the records of every change would outlive all else that a delivery allocates.
 */
export class ReplayBuffer {
  readonly #changes: EventChange[] = []
  #isRecording = false

  get isRecording(): boolean {
    return this.#isRecording
  }

  /** Records from now on, after these. */
  start(before: readonly EventChange[]): void {
    this.#isRecording = true
    this.#changes.push(...before)
  }

  add(change: EventChange): void {
    if (!this.#isRecording) return
    this.#changes.push(change)
    if (this.#changes.length > maxChanges)
      this.#changes.splice(0, this.#changes.length - maxChanges / 2)
  }

  /** The changes after this number. */
  since(sequence: number): readonly EventChange[] {
    return this.#changes.filter((change) => change.sequence > sequence)
  }
}
