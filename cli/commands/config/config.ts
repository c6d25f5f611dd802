import { spawn } from 'node:child_process'
import { chmod, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { initHome } from '../../../shared/home/init-home.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { didYouMean, toPlainText } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findRunningDaemon } from '../../daemon-client/connect.ts'
import { exitDone, exitFailed } from '../../exit-code.ts'
import { reloadIfRunning } from '../daemon/reload.ts'
import { approveDesktopWarnings } from '../../../shared/approve/warnings.ts'
import type { Home } from '../../../shared/home/home.ts'
import { readTrayPid } from '../doctor/tray.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import type { Warning } from '../../../shared/config/warning.ts'
import { agentProgramWarnings } from '../../../shared/agents/program.ts'
import { scheduleProgramWarnings } from '../../../shared/schedules/warnings.ts'
import { sandboxWarnings } from '../../../shared/sandbox/warnings.ts'
import { whoWarnings } from './who-warnings.ts'
import { envFileWarnings, readEnvironment } from '../../../shared/config/environment.ts'
import { readSecretFile } from '../../../shared/home/home.ts'
import { type Config, ConfigError, loadConfig, formatProblem } from '../../../shared/config/load.ts'
import { fileTargetWarnings } from '../../../shared/targets/warnings.ts'
import type { Problem } from '../../../shared/config/yaml.ts'
import { type ConfigName, toJsonSchema } from '../../../shared/config/schema.ts'

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
    const names = ['webhooks', 'agents', 'gateway', 'schedules', 'env']
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

/** Prints all problems of the three files, and warnings on standard error. */
export const checkConfiguration = async (context: Context): Promise<void> => {
  await isConfigurationGood(context)
}

/** The same; true when there are no problems. */
export const isConfigurationGood = async ({ home, terminal }: Context): Promise<boolean> => {
  const env = await readEnvironment(home)
  const { config, problems } = await load(() => loadConfig(home, env))
  const warnings: Warning[] = config
    ? [
        ...envFileWarnings((await readSecretFile(home.env)) ?? ''),
        ...collectWarnings(config, env),
        ...(await agentProgramWarnings(config, env, home.root)),
        ...(await scheduleProgramWarnings(config, env, home.root)),
        ...(await sandboxWarnings(config, env, home.root)),
        ...(await fileTargetWarnings(config, home.root)),
        ...(await whoWarnings(config, env, home)),
        ...((await isWithoutDesktop(home, env)) ? approveDesktopWarnings(config) : []),
      ]
    : []
  if (problems.length > 0) process.exitCode = exitFailed
  if (terminal.json) {
    terminal.printJson({ ok: problems.length === 0, problems, warnings })
    return problems.length === 0
  }
  for (const problem of problems) terminal.print(toPlainText(formatProblem(problem)))
  for (const { detail, hint } of warnings) {
    terminal.warn(`${terminal.paintError('yellow', 'warning:')} ${toPlainText(detail)}`)
    terminal.say(`hint: ${toPlainText(hint)}`)
  }
  if (config) terminal.print(summarize(config))
  else terminal.say(`${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`)
  return problems.length === 0
}

/** True over ssh, in a container and on a server. */
const isWithoutDesktop = async (home: Home, env: NodeJS.ProcessEnv): Promise<boolean> =>
  process.platform === 'linux' &&
  !env['DISPLAY'] &&
  !env['WAYLAND_DISPLAY'] &&
  (await readTrayPid(home)) === undefined

const load = async (
  read: () => Promise<Config>,
): Promise<{ config?: Config; problems: readonly Problem[] }> => {
  try {
    return { config: await read(), problems: [] }
  } catch (error) {
    if (error instanceof ConfigError) return { problems: error.problems }
    throw error
  }
}

const summarize = ({ webhooks, agents }: Config): string =>
  `ok: ${count(webhooks.length, 'webhook')}${describeRules(webhooks)}, ${count(agents.size, 'agent')}`

const describeRules = (webhooks: Config['webhooks']): string => {
  const named = webhooks.flatMap(({ rules }) => rules).filter(({ name }) => name !== undefined)
  return named.length === 0 ? '' : ` with ${count(named.length, 'rule')}`
}

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`

/** Prints the JSON Schema of a configuration file, as in `config/schema/` of the package. */
export const printSchema = ({ terminal }: Context, [name = '']: string[]): void =>
  terminal.printJson(toJsonSchema(parseConfigName(name)))

const names: readonly ConfigName[] = ['webhooks', 'agents', 'gateway', 'schedules']

/** The configuration file that is meant, `.yaml` allowed. Throws `usage` for any other name. */
export const parseConfigName = (text: string): ConfigName => {
  const name = names.find((known) => text === known || text === `${known}.yaml`)
  if (name) return name
  throw new DoorwardError('usage', `there is no configuration file "${text}"`, {
    hint: `one of ${names.join(', ')}`,
  })
}
