import type { JsMsg } from '@nats-io/jetstream'
import type { Broker } from './broker.ts'

/** A message that is being worked on. */
export type Held = {
  /** It came again: the answer to the broker is that of the newer. */
  readonly replace: (message: JsMsg) => void
  readonly release: (how: 'ack' | 'nak') => void
}

/** Extends the time of a message (`lost_after`) until it is released, however long that takes. */
export const keepWorking = (
  first: JsMsg,
  broker: Pick<Broker, 'isClosed' | 'link' | 'lostAfterMs' | 'madeAt'>,
  lostAfterMs = broker.lostAfterMs,
): Held => {
  let message = first
  let { madeAt } = broker
  const tell = (how: 'working' | 'ack' | 'nak') => {
    // Writing to a connection that is being closed would end the process.
    if (broker.isClosed) return
    // In a stream that was made anew its number is that of another message, which would be gone.
    if (!broker.link || broker.madeAt !== madeAt) return
    try {
      message[how]()
    } catch {
      // The connection is closed: it comes again.
    }
  }
  const timer = setInterval(() => tell('working'), lostAfterMs / 3)
  timer.unref()
  return {
    replace: (newer) => {
      message = newer
      ;({ madeAt } = broker)
    },
    release: (how) => {
      clearInterval(timer)
      tell(how)
    },
  }
}
