import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { makeHome } from '../shared/first-home.ts'
import { isConfigurationGood } from './config-check.ts'
import { configNameOf } from './config-name.ts'
import type { Context } from './context.ts'
import { reloadIfRunning } from './daemon-reload.ts'
import { exitFailed } from './exit-code.ts'

/**
 * Opens a configuration file in the editor of the environment, then checks the configuration; when it is
 * good, a daemon that runs takes it.
 */
export const editConfiguration = async (
  context: Context,
  [given = 'webhooks']: (string | undefined)[],
): Promise<void> => {
  const name = configNameOf(given)
  await makeHome(context.home)
  const ended = await runEditor(join(context.home.config, `${name}.yaml`))
  if (ended === 0) {
    if (await isConfigurationGood(context)) await reloadIfRunning(context)
    return
  }
  process.exitCode = exitFailed
  context.terminal.warn(`the editor ended with ${ended}`)
}

/** The value is split at spaces, as git does not need a shell for `code --wait` either. */
const runEditor = async (path: string): Promise<number | string> => {
  const fallback = process.platform === 'win32' ? 'notepad' : 'vi'
  const words = (process.env['VISUAL'] || process.env['EDITOR'] || fallback)
    .split(' ')
    .filter((word) => word !== '')
  const [program = fallback, ...args] = words
  return new Promise<number | string>((resolve, reject) => {
    const child = spawn(program, [...args, path], { stdio: 'inherit' })
    child.once('error', (error) =>
      reject(
        new DoorwardError('usage', `cannot run the editor ${program} (${systemCode(error)})`, {
          cause: error,
          hint: 'set VISUAL or EDITOR to a program that edits text',
        }),
      ),
    )
    child.once('exit', (exitCode, signal) => resolve(exitCode ?? signal ?? 'a signal'))
  })
}
