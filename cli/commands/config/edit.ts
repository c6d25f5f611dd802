import { spawn } from 'node:child_process'
import { chmod, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { initHome } from '../../../shared/config/init-home.ts'
import type { ConfigName } from '../../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { didYouMean } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findRunningDaemon } from '../../daemon-client/connect.ts'
import { exitDone, exitFailed } from '../../exit-code.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { isConfigurationGood } from './check.ts'

/**
 * Opens a configuration file, or `.env`, in the editor of the environment, and checks the configuration
 * when it is closed; on a terminal a broken file can be opened again at once. When all is good a daemon
 * that runs takes it; else that one goes on as configured before. Throws `usage`.
 */
export const editConfiguration = async (
  context: Context,
  [given = 'webhooks']: (string | undefined)[],
): Promise<void> => {
  const { home, terminal } = context
  const isSecret = given === 'env' || given === '.env'
  const path = isSecret ? home.env : join(home.config, `${expandName(given)}.yaml`)
  await initHome(home)
  let before = await readFile(path, 'utf8').catch(() => '')
  let isChanged = false
  for (;;) {
    const ended = await runEditor(path)
    if (isSecret) await closeToOthers(path, context)
    if (ended !== 0) {
      process.exitCode = exitFailed
      terminal.warn(`the editor ended with ${ended}`)
      return
    }
    const now = await readFile(path, 'utf8').catch(() => '')
    if (now === before) terminal.say('nothing was changed')
    isChanged ||= now !== before
    before = now
    process.exitCode = exitDone
    if (await isConfigurationGood(context)) {
      if (isChanged) (await reloadIfRunning(context))?.tell()
      return
    }
    if (!(await wantsToGoOn(context))) {
      await sayWhatCounts(context)
      return
    }
  }
}

const expandName = (given: string): string => {
  try {
    return parseConfigName(given)
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const names = ['webhooks', 'agents', 'gateway', 'env']
    throw new DoorwardError(error.code, error.message, {
      hint: didYouMean(given, names) ?? `one of ${names.join(', ')}`,
    })
  }
}

/** An editor may have written a file of its own over it, with a mode of its own. */
const closeToOthers = async (path: string, { terminal }: Context): Promise<void> => {
  if (process.platform === 'win32') return
  const { mode } = await stat(path).catch(() => ({ mode: 0 }))
  if ((mode & 0o077) === 0) return
  await chmod(path, 0o600)
  terminal.warn(`${path} was open to other users after the edit; it is 0600 again`)
}

const wantsToGoOn = async ({ terminal }: Context): Promise<boolean> => {
  if (!process.stdin.isTTY || !terminal.isInteractive) return false
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = new Promise<string>((resolve) => lines.once('close', () => resolve('n')))
    const given = await Promise.race([lines.question('open it again? [Y/n] '), answer])
    return !/^n/i.test(given.trim())
  } finally {
    lines.close()
  }
}

const sayWhatCounts = async (context: Context): Promise<void> => {
  const client = await findRunningDaemon(context).catch(() => undefined)
  client?.close()
  if (client) context.terminal.say('the daemon goes on as configured before')
}

/** Editors that come back at once, before anything was edited, unless they are told to wait. */
const needsWait = /^(code|code-insiders|codium|cursor|subl|zed|atom)(\.(cmd|exe))?$/

/**
 * Opens a file in `$VISUAL`, else `$EDITOR`, else vi (Windows: notepad); gives the exit code or the signal
 * it ended with. Files that it makes are for this user alone. Throws `usage` when it cannot be run.
 */
const runEditor = async (
  path: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number | string> => {
  const given = (env['VISUAL'] || env['EDITOR'] || '').trim()
  const [program, ...args] = splitWords(given || (process.platform === 'win32' ? 'notepad' : 'vi'))
  if (program === undefined || program === '') throw cannotRun(given, 'it names no program')
  if (needsWait.test(basename(program)) && !args.some((arg) => /^(-w|--wait)$/.test(arg)))
    args.push('--wait')
  const before = process.umask(0o077)
  try {
    return await new Promise<number | string>((resolve, reject) => {
      const child = spawn(program, [...args, path], { stdio: 'inherit' })
      // Ctrl-C in the editor is the editor's.
      const ignore = () => undefined
      process.on('SIGINT', ignore)
      child.once('error', (error) => {
        process.off('SIGINT', ignore)
        const why =
          systemCode(error) === 'ENOENT' ? 'there is no such program' : `${systemCode(error)}`
        reject(cannotRun(program, why, error))
      })
      child.once('exit', (exitCode, signal) => {
        process.off('SIGINT', ignore)
        resolve(exitCode ?? signal ?? 'a signal')
      })
    })
  } finally {
    process.umask(before)
  }
}

const cannotRun = (program: string, why: string, cause?: unknown): DoorwardError =>
  new DoorwardError('usage', `cannot run the editor ${program}: ${why}`, {
    cause,
    hint: 'set VISUAL or EDITOR to a program that edits text, for example EDITOR=nano',
  })

/** Splits at spaces, but not within quotes, as a shell does; nothing else of a shell is known here. */
export const splitWords = (text: string): string[] =>
  [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"']+)+/g)].map(([word]) =>
    word.replaceAll(
      /"([^"]*)"|'([^']*)'/g,
      (_, double?: string, single?: string) => double ?? single ?? '',
    ),
  )

const names: readonly ConfigName[] = ['webhooks', 'agents', 'gateway']

/** The configuration file that is meant, `.yaml` allowed. Throws `usage` for any other name. */
export const parseConfigName = (text: string): ConfigName => {
  const name = names.find((known) => text === known || text === `${known}.yaml`)
  if (name) return name
  throw new DoorwardError('usage', `there is no configuration file "${text}"`, {
    hint: `one of ${names.join(', ')}`,
  })
}
