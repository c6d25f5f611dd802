import { execFile } from 'node:child_process'
import { release } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Status } from '../shared/api.ts'
import { nameOf } from '../shared/errors.ts'
import { findUserHome, type Home } from '../shared/home/home.ts'
import { cliProgram, packageFolder, version } from '../shared/version.ts'
import { type Words, privateWords, redact } from './redact.ts'
import { withDaemon } from './with-daemon.ts'

const limitMs = 30_000
const maxBytes = 1024 * 1024

/**
 * What helps somebody else to see what is wrong, as JSON text in ASCII: what `doorward doctor` finds, or
 * without it the bare facts. Holds no token, secret, payload, prompt, answer or name of an account.
 */
export const collectDiagnostics = async (home: Home): Promise<string> => {
  const status = await withDaemon(home, async (client) => client.get<Status>('/status')).catch(
    nameOf,
  )
  const found = (await askDoctor(home)) ?? bareFacts(status)
  const words: Words = [
    [home.root, '<home>'],
    [findUserHome() ?? '', '~'],
    ...(typeof status === 'string' ? [] : privateWords(status)),
  ]
  // Clipboards differ in what they make of other characters.
  return `${JSON.stringify(redact(found, words), null, 2).replaceAll(
    /[^\0-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}\n`
}

/** What the command prints; undefined where it says nothing that can be read. */
const askDoctor = async (home: Home): Promise<object | undefined> =>
  new Promise((resolve) => {
    const cli = fileURLToPath(new URL(cliProgram, packageFolder))
    const args = [cli, 'doctor', '--json', '--home', home.root]
    const options = { timeout: limitMs, maxBuffer: maxBytes, windowsHide: true }
    // It ends with 1 when something is wrong, and that is when it is wanted.
    execFile(process.execPath, args, options, (_, stdout) => resolve(readReport(stdout)))
  })

const readReport = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** `status` is what the daemon says, or why it says nothing. */
const bareFacts = (status: Status | string): object => ({
  version,
  platform: `${process.platform} ${release()} ${process.arch}`,
  node: process.version,
  desktop: process.env['XDG_CURRENT_DESKTOP'] ?? null,
  session: process.env['XDG_SESSION_TYPE'] ?? null,
  daemon: typeof status === 'string' ? status : factsOf(status),
})

/**
 * What of a status may be shown to strangers. The detail of an event can quote what an agent said, and
 * the name of a target tells who is written to.
 */
const factsOf = (status: Status): object => ({
  version: status.version,
  startedAt: status.startedAt,
  queue: status.queue,
  hasPublicUrl: status.publicUrl !== undefined,
  providers: status.providers.map(({ provider, clientKnown, status: state }) => ({
    provider,
    clientKnown,
    status: state,
  })),
  webhooks: status.webhooks.map(({ scheme, secret, enabled, deliverTo, counts }) => ({
    scheme,
    secret,
    enabled,
    deliverTo: deliverTo.map((target) => target.replace(/:.*$/s, '')),
    counts,
  })),
  events: status.events.map(({ state, stage, code, attempts, durations, receivedAt }) => ({
    receivedAt,
    state,
    stage,
    code,
    attempts,
    durations,
  })),
  problems: status.problems.map(({ code }) => code),
})
