import { duration } from '../../../shared/text.ts'
import { endingWords } from '../../ending-words.ts'
import { type Check, checksOf } from '../check.ts'
import type { DaemonFacts, LogFacts } from '../look/daemon.ts'

const { ok, warning, error, skipped } = checksOf('daemon')

/** Ten megabytes and four old files of them are kept. */
const largeLog = 80 * 1024 * 1024
const slowMs = 1000

/** Whether the daemon runs, answers, and is the one of this command; and what its log says of crashes. */
export const judgeDaemon = (
  facts: DaemonFacts,
  log: LogFacts,
  { version, now }: { readonly version: string; readonly now: number },
): Check[] => [...life(facts, version, now), ...traces(facts, log)]

const life = (
  { file, isAlive, status, answeredMs, failure }: DaemonFacts,
  version: string,
  now: number,
): Check[] => {
  if (status) {
    const since = duration(now - Date.parse(status.startedAt))
    const answered = Math.round(answeredMs ?? 0)
    const where = `at ${status.url} (pid ${file?.pid})`
    const ending = endingWords(status)
    return [
      ending === undefined
        ? ok('running', `${where}, for ${since}`)
        : warning(
            'running',
            `${where}, but it was stopped: it takes nothing new and ends ${ending}`,
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
            `it was killed or crashed: run/daemon.json names pid ${file.pid}, which has gone`,
            'doorward daemon start',
          )
        : warning('running', 'it does not run: no webhook is taken', 'doorward daemon start'),
    ]
  return [
    error('running', failure?.detail ?? 'it does not answer', failure?.hint),
    skipped('version', 'the daemon does not answer'),
  ]
}

const traces = (
  { isAlive }: DaemonFacts,
  { bytes, starts, ends, lastWords }: LogFacts,
): Check[] => {
  const crashes = starts - ends - (isAlive ? 1 : 0)
  const words = firstWords(lastWords)
  return [
    bytes > largeLog
      ? warning(
          'log',
          `logs/ holds ${sizeOf(bytes)}`,
          'remove old files in logs/ of the home folder',
        )
      : ok('log', bytes === 0 ? 'nothing is logged yet' : `${sizeOf(bytes)} in logs/`),
    crashes > 0
      ? warning(
          'crashes',
          `it ended without a goodbye ${crashes === 1 ? 'once' : `${crashes} times`} in the last day`,
          'doorward daemon logs',
        )
      : ok('crashes', 'none in the last day'),
    ...(words === undefined
      ? []
      : [
          warning(
            'last words',
            `the last start in the background left on standard error: ${words}`,
            'see logs/daemon.stderr in the home folder',
          ),
        ]),
  ]
}

const sizeOf = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} kB` : `${Math.round(bytes / 1024 / 1024)} MB`

/** Our own first line; of a crash no more than its class, as a foreign message may hold anything. */
const firstWords = (text: string): string | undefined => {
  if (text.trim() === '') return undefined
  const own = /^doorward: (.*)$/m.exec(text)?.[1]
  if (own !== undefined) return own
  const kind = /^(?:Uncaught )?(\w*Error)\b/m.exec(text)?.[1]
  return kind === undefined ? `${text.trim().split('\n').length} lines` : `a crash (${kind})`
}
