import type { EventSession, SessionSummary } from '../../shared/api/sessions.ts'
import type { Agent } from '../../shared/config/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Answer } from '../agents/answer.ts'
import { type SessionTurn, tooLong, type Transcript } from '../agents/sessions/transcript.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import { createKeyedMutex } from '../util/concurrency.ts'
import type { WorkspaceRequest } from '../workspace/request.ts'
import { type SessionRequest, toFingerprint } from './request.ts'

/** A conversation of an agent program, between two events. */
export type Session = Pick<SessionRequest, 'name' | 'webhook' | 'rule' | 'key' | 'ttlMs'> & {
  readonly agent: string
  readonly program: string
  readonly fingerprint: string
  readonly turns: number
  /** In milliseconds since 1970, so that they last over a restart. */
  readonly startedAt: number
  readonly usedAt: number
  readonly event: string
  /** Missing where the next event starts a new one, for this reason. */
  readonly transcript?: Transcript | undefined
  readonly why?: string | undefined
  readonly code?: SessionCode | undefined
}

/** The code that the last event of a session saw. */
export type SessionCode = { readonly request: WorkspaceRequest; readonly commit: string }

/** Where sessions are besides the memory. */
export type SessionFiles = {
  readonly isSealing: () => boolean
  /** In order, in the background. */
  readonly save: (session: Session) => void
  readonly remove: (name: string) => void
}

type Asked = {
  readonly id: string
  readonly agentName: string
  readonly agent: Agent
  readonly code: SessionCode | undefined
}

type Ask = (turn: SessionTurn) => Promise<Answer>

/** The things that a turn has left for the next one. */
type Left = Pick<Session, 'transcript' | 'why'>

/** The most for all transcripts together. */
const maxBytes = 64 * 1024 ** 2
const maxSessions = 1000
const sweepMs = 3_600_000

/** The conversations of all rules: in memory, and sealed in files where gateway.yaml says so. */
export class Sessions {
  /** The one that was not used for longest is the first. */
  readonly #sessions = new Map<string, Session>()
  /** The event that runs, by session. */
  readonly #running = new Map<string, string>()
  readonly #forgotten = new Set<string>()
  /** Names whose files could not be opened. */
  readonly #lost = new Set<string>()
  readonly #withLock = createKeyedMutex()
  #files: SessionFiles | undefined

  constructor(events: Pick<EventStore, 'follow'>) {
    events.follow(({ record: { id, state } }) => {
      if (this.#running.size > 0 && isFinal(state)) this.#leaveAll(id)
    })
    setInterval(() => this.#sweep(Date.now()), sweepMs).unref()
  }

  keepIn(files: SessionFiles): void {
    this.#files = files
  }

  noteLost(name: string): void {
    this.#lost.add(name)
  }

  /** False while another event of it runs. */
  isFree(name: string): boolean {
    return !this.#running.has(name)
  }

  enter(name: string, id: string): void {
    this.#running.set(name, id)
  }

  leave(name: string, id: string): void {
    if (this.#running.get(name) === id) this.#running.delete(name)
  }

  /** Asks the agent of an event in its session; `had` is called with how it went on. */
  async run(
    request: SessionRequest,
    asked: Asked,
    ask: Ask,
    had: (session: EventSession) => void,
  ): Promise<{ readonly answer: Answer; readonly notes: readonly string[] }> {
    return this.#withLock(request.name, async () => {
      const { name, limitBytes } = request
      const now = Date.now()
      this.#sweep(now)
      this.#forgotten.delete(name)
      const known = this.#sessions.get(name)
      // It is not swept while this event runs.
      const before = known && isOver(known, now) ? undefined : known
      const turn = new Turn(request, asked, before)
      if (this.#lost.delete(name)) turn.why ??= 'its file could not be opened with the key of today'
      try {
        const answer = await ask({
          earlier: turn.earlier,
          limitBytes,
          beginAnew: (why) => (turn.why = why),
          refuse: (why) => (turn.refused = why),
          keep: (transcript) => (turn.left = { transcript }),
          lose: (why) => (turn.left = { why }),
        })
        if (turn.refused !== undefined) {
          this.#remove(name)
          return { answer, notes: [`no conversation was kept: ${turn.refused}`] }
        }
        had(turn.describe())
        const isForgotten = this.#forgotten.has(name)
        if (isForgotten) turn.left = { why: 'it was forgotten while its agent ran' }
        else this.put(turn.toSession())
        return { answer, notes: turn.notes() }
      } catch (error) {
        // It may not end the next time either.
        const isSlow = error instanceof DoorwardError && error.code === 'agent-timeout'
        if (isSlow && turn.earlier && !this.#forgotten.has(name)) {
          turn.left = { why: 'its last event took longer than timeout' }
          this.put(turn.toSession())
        }
        throw error
      }
    })
  }

  /** Adds a session, or replaces an older one; one that comes from a file or another process is not saved again. */
  put(session: Session, isSaved = false): void {
    const known = this.#sessions.get(session.name)
    if (isSaved && known && known.usedAt >= session.usedAt) return
    this.#sessions.delete(session.name)
    this.#sessions.set(session.name, session)
    if (!isSaved) this.#files?.save(session)
    let bytes = this.bytes()
    for (const { name, transcript } of this.#sessions.values()) {
      if (bytes <= maxBytes && this.#sessions.size <= maxSessions) return
      bytes -= transcript?.bytes.length ?? 0
      this.#remove(name)
    }
  }

  bytes(): number {
    let sum = 0
    for (const { transcript } of this.#sessions.values()) sum += transcript?.bytes.length ?? 0
    return sum
  }

  get(name: string): Session | undefined {
    this.#sweep(Date.now())
    return this.#sessions.get(name)
  }

  /** The session whose last event this is. */
  leftBy(id: string): Session | undefined {
    return [...this.#sessions.values()].find(({ event }) => event === id)
  }

  /** The last used first. */
  list(): SessionSummary[] {
    this.#sweep(Date.now())
    return [...this.#sessions.values()].map((session) => this.summarize(session)).toReversed()
  }

  summarize(session: Session): SessionSummary {
    const { name, webhook, rule, key, agent, program, turns, transcript, why, event } = session
    const { startedAt, usedAt, ttlMs, code } = session
    const toIso = (ms: number) => new Date(ms).toISOString()
    return {
      id: name,
      webhook,
      ...(rule !== undefined && { rule }),
      key,
      agent,
      program,
      turns,
      bytes: transcript?.bytes.length ?? 0,
      startedAt: toIso(startedAt),
      usedAt: toIso(usedAt),
      expiresAt: toIso(usedAt + ttlMs),
      isSealed: this.#files?.isSealing() ?? false,
      isRunning: this.#running.has(name),
      ...(why !== undefined && { why }),
      event,
      ...(transcript?.totals && { totals: transcript.totals }),
      ...(code && { code: { repository: code.request.repo, commit: code.commit } }),
    }
  }

  /** Puts a conversation that went on at the terminal in the place of ours; its totals are not known any more. */
  takeBack(name: string, id: string, bytes: Uint8Array): Session {
    const session = this.#sessions.get(name)
    if (!session?.transcript) throw new DoorwardError('session-not-found', 'it was forgotten')
    const { program } = session.transcript
    const next = { ...session, usedAt: Date.now(), transcript: { program, id, bytes } }
    this.put(next)
    return next
  }

  /** Forgets a session, with the turn that runs. */
  forget(name: string): void {
    this.#forgotten.add(name)
    this.#remove(name)
  }

  snapshot(): readonly Session[] {
    return [...this.#sessions.values()]
  }

  restore(sessions: readonly Session[]): void {
    for (const session of sessions) this.put(session, true)
  }

  #remove(name: string): void {
    this.#sessions.delete(name)
    this.#files?.remove(name)
  }

  #sweep(now: number): void {
    for (const session of this.#sessions.values())
      if (isOver(session, now) && !this.#running.has(session.name)) this.#remove(session.name)
  }

  #leaveAll(id: string): void {
    for (const [name, running] of this.#running) if (running === id) this.#running.delete(name)
  }
}

/** One turn of a session while its agent runs. */
class Turn {
  readonly #request: SessionRequest
  readonly #asked: Asked
  readonly #before: Session | undefined
  readonly #fingerprint: string
  /** Undefined where the conversation begins. */
  readonly earlier: Transcript | undefined
  /** Why the earlier conversation could not go on. */
  why: string | undefined
  refused: string | undefined
  left: Left = { why: 'its program left no transcript' }

  constructor(request: SessionRequest, asked: Asked, before: Session | undefined) {
    this.#request = request
    this.#asked = asked
    this.#before = before
    this.#fingerprint = toFingerprint(request, asked.agentName, asked.agent)
    this.why = before && findFault(before, this.#fingerprint, request.limitBytes)
    this.earlier = this.why === undefined ? before?.transcript : undefined
  }

  describe(): EventSession {
    const { key } = this.#request
    if (this.why !== undefined) return { key, turn: 1, state: 'anew', why: this.why }
    return this.#before
      ? { key, turn: this.#before.turns + 1, state: 'resumed' }
      : { key, turn: 1, state: 'new' }
  }

  toSession(): Session {
    const { name, webhook, rule, key, ttlMs } = this.#request
    const { id, agentName, agent, code } = this.#asked
    const { turn, state } = this.describe()
    const usedAt = Date.now()
    return {
      name,
      webhook,
      rule,
      key,
      ttlMs,
      agent: agentName,
      program: agent.kind,
      fingerprint: this.#fingerprint,
      turns: turn,
      startedAt: (state === 'resumed' && this.#before?.startedAt) || usedAt,
      usedAt,
      event: id,
      code,
      ...this.left,
    }
  }

  /** A note for the owner. */
  notes(): string[] {
    const { why, left } = this
    return [
      ...(why === undefined ? [] : [`a new conversation was started: ${why}`]),
      ...(left.why === undefined ? [] : [`the next event starts a new conversation: ${left.why}`]),
    ]
  }
}

const isOver = ({ usedAt, ttlMs }: Session, now: number): boolean => usedAt + ttlMs <= now

/** Why a session cannot go on; undefined where it can. */
const findFault = (
  { fingerprint, transcript, why }: Session,
  current: string,
  limitBytes: number,
): string | undefined => {
  if (fingerprint !== current) return 'its agent, the tools or the prompt_template have changed'
  if (!transcript) return why ?? 'its transcript is missing'
  return transcript.bytes.length > limitBytes ? tooLong : undefined
}
