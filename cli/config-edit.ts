import { chmod, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { DoorwardError } from '../shared/errors.ts'
import { makeHome } from '../shared/config/init-home.ts'
import { nearest } from '../shared/text.ts'
import { isConfigurationGood } from './config-check.ts'
import { configNameOf } from './config-name.ts'
import type { Context } from './context.ts'
import { reloadIfRunning } from './daemon-reload.ts'
import { exitDone, exitFailed } from './exit-code.ts'
import { findRunningDaemon } from './find-daemon.ts'
import { runEditor } from './run-editor.ts'

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
  const path = isSecret ? home.env : join(home.config, `${nameOf(given)}.yaml`)
  await makeHome(home)
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

const nameOf = (given: string): string => {
  try {
    return configNameOf(given)
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const names = ['webhooks', 'agents', 'gateway', 'env']
    throw new DoorwardError(error.code, error.message, {
      hint: nearest(given, names) ?? `one of ${names.join(', ')}`,
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
