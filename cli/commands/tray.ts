import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../shared/version.ts'
import type { Context } from '../context.ts'
import { exitFailed, exitInterrupted } from '../exit-code.ts'

/** Runs the tray as a child process and exits with its exit code. */
export const startTray = async (
  { home, terminal }: Context,
  _args: string[],
  { wait }: { readonly wait?: boolean },
): Promise<void> => {
  const main = fileURLToPath(new URL('dist/tray/main.js', packageFolder))
  const flags = [...(wait ? ['--wait'] : []), ...(terminal.json ? ['--json'] : [])]
  const child = spawn(process.execPath, [main, '--home', home.root, ...flags], { stdio: 'inherit' })
  // Ctrl-C reaches the tray too, as it is in the same process group; wait for it to exit.
  process.on('SIGINT', () => undefined)
  for (const name of ['SIGTERM', 'SIGHUP'] as const) process.on(name, () => child.kill(name))
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      resolve(code ?? (signal === 'SIGINT' ? exitInterrupted : exitFailed)),
    )
  })
}
