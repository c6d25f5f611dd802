/** What a target is given: an agent's answer, and the event it answers. */
export type Answered = {
  readonly eventId: string
  readonly webhook: string
  readonly receivedAt: Date
  readonly text: string
}
