import type { WebSocket } from 'ws'
import { parseJson, textAt, valueAt } from '../../util/payload-path.ts'
import { SourceFault } from '../source.ts'
import { toSocketFault } from './connect.ts'

/** Slack sends an app such messages (docs.slack.dev/apis/events-api/using-socket-mode, "Events"). */
export type Envelope = {
  readonly id: string
  /** `events_api`, `slash_commands`, `interactive`, or one that is new. */
  readonly type: string
  /** The body that Slack would post to a request URL, as JSON. */
  readonly payload: unknown
}

type Heard = {
  /** How many sockets the app has, this one included; undefined where Slack does not say. */
  readonly hello: (connections: number | undefined) => void
  readonly envelope: (envelope: Envelope) => void
  /** Slack ends this socket soon: `warning`, `refresh_requested` or `link_disabled`. */
  readonly ending: (reason: string) => void
  /** It is closed. `fault`: why it never was open. */
  readonly closed: (fault: SourceFault | undefined) => void
}

/** In milliseconds. */
export type SocketTimes = {
  readonly ping: number
  /** A path through NAT may die without a word. */
  readonly silent: number
  readonly hello: number
}

export const usualSocketTimes: SocketTimes = { ping: 30_000, silent: 75_000, hello: 20_000 }

const farewellMs = 2000

/** One connection: says what it hears, and ends itself when it hears nothing. */
export class SlackSocket {
  readonly #ws: WebSocket
  readonly #now: () => number
  readonly #silentMs: number
  #heardMs: number
  #saidHello = false
  #isClosed = false
  readonly #pings: NodeJS.Timeout
  readonly #helloTimer: NodeJS.Timeout

  constructor(ws: WebSocket, heard: Heard, now: () => number, times: SocketTimes) {
    this.#silentMs = times.silent
    this.#ws = ws
    this.#now = now
    this.#heardMs = now()
    let fault: SourceFault | undefined
    this.#helloTimer = setTimeout(() => {
      fault = new SourceFault('slack opened a socket and said no hello')
      ws.terminate()
    }, times.hello)
    this.#pings = setInterval(() => this.check(), times.ping)
    const noteHeard = () => void (this.#heardMs = this.#now())
    ws.on('ping', noteHeard)
    ws.on('pong', noteHeard)
    ws.on('message', (data) => {
      noteHeard()
      this.#hear(data as Buffer, heard)
    })
    ws.on('error', (error) => {
      if (!this.#saidHello) fault = toSocketFault(error)
    })
    ws.once('close', () => {
      this.#isClosed = true
      clearTimeout(this.#helloTimer)
      clearInterval(this.#pings)
      heard.closed(this.#saidHello ? undefined : (fault ?? toSocketFault(undefined)))
    })
  }

  #hear(data: Buffer, heard: Heard): void {
    const message = parseJson(data.toString('utf8'))
    const type = textAt(message, 'type') ?? ''
    if (type === 'hello') {
      this.#saidHello = true
      clearTimeout(this.#helloTimer)
      const connections = valueAt(message, ['num_connections'])
      heard.hello(typeof connections === 'number' ? connections : undefined)
    } else if (type === 'disconnect') heard.ending(textAt(message, 'reason') ?? '')
    else {
      const id = textAt(message, 'envelope_id')
      if (id !== undefined) heard.envelope({ id, type, payload: valueAt(message, ['payload']) })
    }
  }

  /** Asks whether the other side is there, and gives up one that has been silent. Also after sleep. */
  check(): void {
    if (this.#isClosed) return
    if (this.#now() - this.#heardMs > this.#silentMs) this.#ws.terminate()
    else if (this.#ws.readyState === this.#ws.OPEN) this.#ws.ping()
  }

  /** Tells Slack that the queue has an event. Slack sends again what is not acknowledged. */
  acknowledge(id: string): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.send(JSON.stringify({ envelope_id: id }))
  }

  /** Closes it, so that what was acknowledged still arrives. */
  close(): void {
    if (this.#isClosed) return
    this.#ws.close(1000)
    setTimeout(() => this.#ws.terminate(), farewellMs).unref()
  }
}
