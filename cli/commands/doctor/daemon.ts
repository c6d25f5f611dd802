import { open, readFile } from 'node:fs/promises'
import type { DaemonFile, Status } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readDaemonFile } from '../../../shared/client/discovery.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { getStderrPath } from '../../../shared/client/spawn.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { readLockOwner, isAlive } from '../../../shared/home/lock.ts'
import { formatDuration } from '../../../shared/text.ts'
import { version } from '../../../shared/version.ts'
import type { Asker } from '../../context.ts'
import { findDaemon } from '../../daemon-client/connect.ts'
import { endingWords } from '../../terminal/format.ts'
import {
  type Check,
  checkLimitMs,
  type Checks,
  checksFor,
  checksSchema,
  within,
} from '../../../shared/api/checks.ts'

export type DaemonFacts = {
  /** `run/daemon.json`; a killed daemon leaves it behind. */
  readonly file: DaemonFile | undefined
  readonly isAlive: boolean
  /** Another program has the pid of that file by now. */
  readonly isReused?: boolean
  /** The pid that has locked the home, if the file is missing. */
  readonly unlistedPid?: number
  readonly client?: Client
  readonly status?: Status
  readonly answeredMs?: number
  /** Why it did not answer. */
  readonly failure?: { readonly detail: string; readonly hint?: string }
}

const answerMs = 2000

/** Asks the running daemon for its status; starts none. The caller closes the client. */
export const collectDaemon = async (asker: Asker): Promise<DaemonFacts> => {
  const file = await readDaemonFile(asker.home).catch(() => undefined)
  const owner = await readLockOwner(asker.home, 'daemon')
  const unlistedPid = file ? undefined : owner
  const facts = {
    file,
    isAlive: file ? owner === file.pid : owner !== undefined,
    isReused: file !== undefined && owner !== file.pid && isAlive(file.pid),
    ...(unlistedPid !== undefined && { unlistedPid }),
  }
  const start = performance.now()
  try {
    const connected = await within(answerMs, findDaemon(asker))
    if (connected === 'late') return { ...facts, failure: late }
    const client = connected.value
    const signal = AbortSignal.timeout(answerMs)
    const status = await client.get<Status>('/status', { signal }).catch((error: unknown) => {
      client.close()
      throw error
    })
    return { ...facts, file: client.daemon, client, status, answeredMs: performance.now() - start }
  } catch (error) {
    return { ...facts, failure: toFailure(error) }
  }
}

const late = {
  detail: `it did not answer within ${answerMs / 1000} s`,
  hint: 'doorward daemon restart',
}

const toFailure = (error: unknown): NonNullable<DaemonFacts['failure']> => {
  if (!(error instanceof DoorwardError)) return { detail: errorName(error) }
  const { code, message, hint } = error
  if (code === 'interrupted') return late
  return { detail: message, ...(hint === undefined ? {} : { hint }) }
}

const remote = ['machines', 'agents', 'logins', 'targets', 'tunnel'] as const

const otherVersion = 'the running daemon is of another version'

/** Asks the daemon for its checks; without an answer each of its groups says why it was not checked. */
export const askChecks = async (
  { client }: DaemonFacts,
  queue: Gateway['queue'] | undefined,
  online: boolean,
): Promise<Checks> => {
  const skip = (why: string): Checks => ({
    checks: remote
      .filter((group) => group !== 'machines' || (queue && queue.engine !== 'memory'))
      .map((group) => checksFor(group).skipped(group, why)),
  })
  if (!client) return skip('only a running daemon can check this')
  try {
    const timeoutMs = checkLimitMs(online) + 2000
    const answer = await client.post(`/checks${online ? '?online' : ''}`, undefined, { timeoutMs })
    return checksSchema.safeParse(answer).data ?? skip(otherVersion)
  } catch (error) {
    const isOld = error instanceof DoorwardError && error.code === 'webhook-not-found'
    return skip(isOld ? otherVersion : `the daemon did not check it: ${toFailure(error).detail}`)
  }
}

type LogFacts = {
  /** Starts and orderly exits in the log of the last day. */
  readonly starts: number
  readonly exits: number
  /** Standard error of the last start in the background. */
  readonly lastWords: string
}

const tailBytes = 512 * 1024
const dayMs = 86_400_000

/** Counts starts in the daemon's log, and reads the standard error of its last start. */
const collectLog = async (home: Home): Promise<LogFacts> => {
  const messages = messagesSince(await readTail(home.log), Date.now() - dayMs)
  const count = (...wanted: string[]) => messages.filter((text) => wanted.includes(text)).length
  return {
    starts: count('listening'),
    // `finished`: after a restart, by the old process.
    exits: count('stopped', 'finished'),
    lastWords: (await readFile(getStderrPath(home), 'utf8').catch(() => '')).slice(0, 64 * 1024),
  }
}

const readTail = async (path: string): Promise<string> => {
  const file = await open(path).catch(() => undefined)
  if (!file) return ''
  try {
    const { size } = await file.stat()
    const length = Math.min(size, tailBytes)
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('utf8')
  } finally {
    await file.close()
  }
}

const messagesSince = (text: string, since: number): string[] =>
  text.split('\n').flatMap((line) => {
    try {
      const { time, msg } = JSON.parse(line) as { time?: unknown; msg?: unknown }
      if (typeof time !== 'string' || typeof msg !== 'string') return []
      return Date.parse(time) >= since ? [msg] : []
    } catch {
      return []
    }
  })

const { ok, warning, error, skipped } = checksFor('daemon')

const slowMs = 1000

/** Checks that the daemon runs, answers and has our version, and looks for crashes in its log. */
export const checkDaemon = async (facts: DaemonFacts, home: Home): Promise<Check[]> => [
  ...checkProcess(facts),
  ...checkLog(facts, await collectLog(home)),
]

const checkProcess = ({
  file,
  isAlive,
  isReused,
  status,
  answeredMs,
  failure,
}: DaemonFacts): Check[] => {
  if (status) {
    const since = formatDuration(Date.now() - Date.parse(status.startedAt))
    const answered = Math.round(answeredMs ?? 0)
    const where = `at ${status.url} (pid ${file?.pid})`
    const ending = endingWords(status)
    return [
      ending === undefined
        ? ok('running', `${where}, for ${since}`)
        : warning(
            'running',
            `${where}, but it was stopped: it accepts nothing new and exits ${ending}`,
            'doorward daemon start',
          ),
      answered > slowMs
        ? warning('health', `it took ${answered} ms to answer`, 'doorward daemon logs')
        : ok('health', `it answered in ${answered} ms`),
      status.version === version
        ? ok('version', `${version}, as this command`)
        : warning(
            'version',
            `the running daemon is ${status.version}, this command ${version}`,
            'doorward daemon restart',
          ),
    ]
  }
  if (!isAlive)
    return [
      file
        ? error(
            'running',
            `it was killed or crashed: run/daemon.json names pid ${file.pid}, which ${isReused ? 'is another program now' : 'no longer runs'}`,
            'doorward daemon start',
          )
        : warning('running', 'it does not run: webhooks are not received', 'doorward daemon start'),
    ]
  return [
    error('running', failure?.detail ?? 'it does not answer', failure?.hint),
    skipped('version', 'the daemon does not answer'),
  ]
}

const checkLog = ({ isAlive }: DaemonFacts, { starts, exits, lastWords }: LogFacts): Check[] => {
  const crashes = starts - exits - (isAlive ? 1 : 0)
  const words = firstWords(lastWords)
  return [
    crashes > 0
      ? warning(
          'crashes',
          `it crashed ${crashes === 1 ? 'once' : `${crashes} times`} in the last 24 hours`,
          'doorward daemon logs',
        )
      : ok('crashes', 'none in the last 24 hours'),
    ...(words === undefined
      ? []
      : [
          warning(
            'last words',
            `the last start in the background printed an error: ${words}`,
            'see logs/daemon.stderr in the home folder',
          ),
        ]),
  ]
}

/** Our own first line, or the class of another error: its message may contain anything. */
const firstWords = (text: string): string | undefined => {
  if (text.trim() === '') return undefined
  const own = /^doorward: (.*)$/m.exec(text)?.[1]
  if (own !== undefined) return own
  const kind = /^(?:Uncaught )?(\w*Error)\b/m.exec(text)?.[1]
  return kind === undefined ? `${text.trim().split('\n').length} lines` : `a crash (${kind})`
}
