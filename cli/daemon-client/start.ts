import type { ChildProcess } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { type Client, connect } from '../../shared/client/client.ts'
import { readEnvironment } from '../../shared/config/environment.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Home, prepareHome } from '../../shared/home/home.ts'
import { readLockOwner } from '../../shared/home/lock.ts'
import { type Service, findService } from '../../shared/service/service.ts'
import { toPlainText } from '../../shared/text.ts'
import {
  type StartFailure,
  type StartMessage,
  spawnDaemon,
  getStderrPath,
} from '../../shared/client/spawn.ts'
import type { Asker } from '../context.ts'
import { exitFailed, exitUnreachable, exitUnusable } from '../exit-code.ts'
import { findRunningDaemon } from './connect.ts'
import { pause } from '../terminal/spinner.ts'
import { logLine, readTail } from './log-tail.ts'
import { withDeadline } from '../../shared/deadline.ts'

const startTimeoutMs = 20_000

/**
 * A daemon that did not start, with its message and its code if it reported one. `exitCode` is for the
 * command that needed it: 1 when the user has to fix something first, else 3.
 */
export class StartError extends DoorwardError {
  readonly exitCode: number

  constructor(ended: Ended, message: string, hint: string) {
    const isUnusable = ended.exitCode === exitUnusable
    const { code, about } = ended.failure ?? {}
    super(code ?? (isUnusable ? 'config-invalid' : 'daemon-unreachable'), message, { hint, about })
    this.exitCode = isUnusable ? exitFailed : exitUnreachable
  }
}

/** How the process exited; a service manager reports the exit code only, and nothing after a kill. */
type Ended = { readonly exitCode: number; readonly failure?: StartFailure | undefined }

const lost: Ended = { exitCode: exitFailed }

/**
 * Starts the daemon and waits until it answers: through the service manager where it is installed there,
 * so that there is never a second one, else as a detached process.
 * Throws `StartError` with the last lines of its standard error.
 */
export const startAndConnect = async (asker: Asker): Promise<Client> => {
  const { home, userAgent } = asker
  await prepareHome(home)
  const service = await findService(home)
  if (service) return startService(asker, service)
  const since = new Date().toISOString()
  const child = spawnDaemon(home)
  const ended = await waitUntilListening(child)
  if (ended === 'listening') return connect(home, { userAgent })
  if (ended === 'late') {
    const message = `the daemon (pid ${child.pid}) did not answer within ${startTimeoutMs / 1000} s`
    throw new StartError(lost, await withLog(message, home, since), 'doorward daemon logs')
  }
  const other = await anotherStarted(asker)
  if (other) return other
  throw await explained(asker, ended, since)
}

/** Why it did not start: its own message, or else what it has logged since. */
const explained = async ({ home }: Asker, ended: Ended, since: string): Promise<StartError> => {
  const said = toPlainText(await readFile(getStderrPath(home), 'utf8').catch(() => '')).trim()
  const error = startError(ended, said)
  if (said !== '') return error
  return new StartError(ended, await withLog(error.message, home, since), error.hint ?? '')
}

/** The manager reports that the process runs, not that it listens: poll for that. */
const startService = async (asker: Asker, service: Service): Promise<Client> => {
  const { home } = asker
  const since = new Date().toISOString()
  await service.start()
  for (const until = Date.now() + startTimeoutMs; Date.now() < until; await pause(100)) {
    const client = await findRunningDaemon(asker).catch(() => undefined)
    if (client) return client
    const state = await service.state()
    if (state.is === 'failed') {
      const failure = await findConfigFailure(home)
      throw await explained(asker, { exitCode: state.exitCode ?? exitFailed, failure }, since)
    }
    if (state.is === 'stopped') throw await explained(asker, lost, since)
  }
  const message = `the daemon did not answer within ${startTimeoutMs / 1000} s`
  throw new StartError(lost, message, 'doorward daemon logs')
}

/** The manager knows the exit code only. */
const findConfigFailure = async (home: Home): Promise<StartFailure | undefined> => {
  const { loadConfig, toStartFailure } = await import('../../shared/config/load.ts')
  try {
    await loadConfig(home, await readEnvironment(home))
    return undefined
  } catch (error) {
    return error instanceof DoorwardError ? toStartFailure(error) : undefined
  }
}

const shownLines = 5

/** A message with the last lines that the daemon has logged since then. */
const withLog = async (message: string, home: Home, since: string): Promise<string> => {
  const file = await open(home.log, 'r').catch(() => undefined)
  if (!file) return message
  const { lines } = await readTail(file, shownLines).finally(async () => file.close())
  const fresh = lines.filter((line) => (/"time":"([^"]+)"/.exec(line)?.[1] ?? '') >= since)
  return [message, ...fresh.map((line) => logLine(line, (_, text) => text))].join('\n')
}

/** The daemon reports to a parent over IPC when it listens, or why it does not, so nothing is polled. */
const waitUntilListening = async (child: ChildProcess): Promise<'listening' | 'late' | Ended> => {
  const ready = new Promise<'listening' | Ended>((settle) => {
    let failure: StartFailure | undefined
    child.once('message', (message: StartMessage) => {
      if ('code' in message) failure = message
      else settle('listening')
    })
    child.once('error', () => settle(lost))
    child.once('exit', (exitCode) => {
      const end = () => settle({ exitCode: exitCode ?? exitFailed, failure })
      // Its last message may not have been read yet.
      if (child.connected) child.once('disconnect', end)
      else end()
    })
  })
  const result = await withDeadline(startTimeoutMs, ready, () => 'late' as const)
  if (child.connected) child.disconnect()
  child.unref()
  return result
}

/** When two commands start a daemon at the same time, the one that loses uses the other's daemon. */
const anotherStarted = async (asker: Asker): Promise<Client | undefined> => {
  for (let waitedMs = 0; waitedMs < 10_000; waitedMs += 100) {
    const client = await findRunningDaemon(asker).catch(() => undefined)
    if (client) return client
    if ((await readLockOwner(asker.home, 'daemon')) === undefined) return undefined
    await pause(100)
  }
  return undefined
}

/** Reads the daemon's own message: `doorward: <message>` and `hint: <hint>`. */
const startError = (ended: Ended, said: string): StartError => {
  const lines = said.split('\n').slice(-40)
  const message = lines.filter((line) => !line.startsWith('hint: ')).join('\n')
  const hint = lines.findLast((line) => line.startsWith('hint: '))?.slice('hint: '.length)
  return new StartError(
    ended,
    message.replace(/^doorward: /, '') ||
      `the daemon exited with ${ended.exitCode} and printed nothing`,
    hint ?? 'doorward daemon logs',
  )
}
