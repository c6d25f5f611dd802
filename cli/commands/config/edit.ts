import { spawn } from 'node:child_process'
import { chmod, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { initHome } from '../../../shared/home/init-home.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { didYouMean } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findRunningDaemon } from '../../daemon-client/connect.ts'
import { exitDone, exitFailed } from '../../exit-code.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { isConfigurationGood } from './check.ts'
import { parseConfigName } from './schema.ts'

/**
 * Opens a configuration file or `.env` in the user's editor, then checks the configuration; on a terminal
 * it offers to open a broken file again. A running daemon reloads a valid configuration and keeps the old
 * one otherwise. Throws `usage`.
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
    const exit = await runEditor(path)
    if (isSecret) await restrictMode(path, context)
    if (exit !== 0) {
      process.exitCode = exitFailed
      terminal.warn(`the editor exited with ${exit}`)
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
    if (!(await wantsToReopen(context))) {
      await reportUnchanged(context)
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

/** An editor may have replaced the file by one with another mode. */
const restrictMode = async (path: string, { terminal }: Context): Promise<void> => {
  if (process.platform === 'win32') return
  const { mode } = await stat(path).catch(() => ({ mode: 0 }))
  if ((mode & 0o077) === 0) return
  await chmod(path, 0o600)
  terminal.warn(`the editor left ${path} readable by other users; its mode is 0600 again`)
}

const wantsToReopen = async ({ terminal }: Context): Promise<boolean> => {
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

const reportUnchanged = async (context: Context): Promise<void> => {
  const client = await findRunningDaemon(context).catch(() => undefined)
  client?.close()
  if (client) context.terminal.say('the daemon keeps its previous configuration')
}

/** Editors that return immediately unless they get `--wait`. */
const needsWait = /^(code|code-insiders|codium|cursor|subl|zed|atom)(\.(cmd|exe))?$/

/**
 * Opens a file in `$VISUAL`, else `$EDITOR`, else vi (Windows: notepad). Returns the exit code or signal.
 * Files that the editor creates are private to this user. Throws `usage` when it cannot be run.
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
      // Ctrl-C belongs to the editor.
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

/** Splits at spaces outside quotes; no other shell syntax. */
export const splitWords = (text: string): string[] =>
  [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"']+)+/g)].map(([word]) =>
    word.replaceAll(
      /"([^"]*)"|'([^']*)'/g,
      (_, double?: string, single?: string) => double ?? single ?? '',
    ),
  )
