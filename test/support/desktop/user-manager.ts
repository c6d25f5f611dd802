import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { cleanEnvironment, cliMain } from '../daemon/daemon.ts'
import { temporaryFolder } from '../temporary.ts'

/*
 * A real systemd for one user, apart from any that runs on this machine: in a mount namespace where
 * /run/systemd says that the machine was started by systemd. Needs root, or sudo without a password.
 */

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type UserManager = {
  /** HOME of all that runs here. */
  readonly home: string
  readonly systemctl: (...args: string[]) => Promise<Ran>
  /** The command line of doorward, in a session that this manager serves. */
  readonly doorward: (...args: string[]) => Promise<Ran>
  readonly run: (program: string, ...args: string[]) => Promise<Ran>
  /** Waits until a property of a unit is as told. */
  readonly until: (unit: string, property: string, value: RegExp) => Promise<string>
  readonly stop: () => Promise<void>
}

const systemd = '/lib/systemd/systemd'
const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']

/** Starts one whose HOME has this name. Throws with the command that installs what is missing. */
export const startUserManager = async (homeName: string): Promise<UserManager> => {
  if (!existsSync(systemd))
    throw new Error('missing systemd: sudo apt-get install -y --no-install-recommends systemd')
  const folder = await temporaryFolder()
  const home = join(folder, homeName)
  const runtime = join(folder, 'run')
  await mkdir(runtime, { mode: 0o700 })
  const variables = cleanEnvironment({ HOME: home, XDG_RUNTIME_DIR: runtime })
  const environment = Object.entries(variables).map(([key, value]) => `${key}=${value}`)
  const pidFile = join(folder, 'pid')
  const begin = `mount -t tmpfs tmpfs /run/systemd && mkdir /run/systemd/system && mkdir -p -m 700 "$HOME" && echo $$ >"$0" && exec ${systemd} --user --log-target=console`
  const [first = '', ...rest] = [...asRoot, 'env', '-i', ...environment]
  const child: ChildProcess = spawn(
    first,
    [...rest, 'unshare', '--mount', 'sh', '-c', begin, pidFile],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = once(child, 'close')
  while (!existsSync(join(runtime, 'systemd', 'private'))) {
    if (child.exitCode !== null) throw new Error(`systemd --user ended: ${said}`)
    await setTimeout(20)
  }
  const pid = (await readFile(pidFile, 'utf8')).trim()

  const run: UserManager['run'] = async (program, ...args) => {
    const inside = ['nsenter', '--mount', '--target', pid, `--wd=${home}`, program, ...args]
    return new Promise((resolve) =>
      execFile(first, [...rest, ...inside], (error, stdout, stderr) =>
        resolve({ code: Number(error ? (error.code ?? 1) : 0), stdout, stderr }),
      ),
    )
  }
  const systemctl: UserManager['systemctl'] = async (...args) => run('systemctl', '--user', ...args)
  await systemctl('is-system-running', '--wait')
  return {
    home,
    run,
    systemctl,
    doorward: async (...args) => run(process.execPath, cliMain, ...args),
    until: async (unit, property, value) => {
      let seen = ''
      for (const end = Date.now() + 40_000; Date.now() < end; await setTimeout(50)) {
        const { stdout } = await systemctl('show', unit, '--value', `--property=${property}`)
        seen = stdout.trim()
        if (value.test(seen)) return seen
      }
      throw new Error(`${property} of ${unit} is ${seen} after 40 s`)
    },
    stop: async () => {
      await systemctl('exit')
      await ended
      await run('rm', '-rf', home)
    },
  }
}
