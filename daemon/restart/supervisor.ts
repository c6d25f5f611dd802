import { setTimeout as wait } from 'node:timers/promises'
import { readDaemonFile } from '../../shared/client/discovery.ts'
import type { Home } from '../../shared/home/home.ts'
import { readLockOwner, isAlive } from '../../shared/home/lock.ts'
import { runTool } from '../../shared/service/platform.ts'

/**
 * The service manager that started this daemon, or undefined. It watches one process, and takes its
 * end for the daemon's.
 */
const detectServiceManager = (env: NodeJS.ProcessEnv): 'systemd' | 'launchd' | undefined => {
  const name = env['DOORWARD_SERVICE']
  return name === 'systemd' || name === 'launchd' ? name : undefined
}

/**
 * Tells the manager to watch another process of ours from now on (sd_notify(3), `MAINPID=`), so that we
 * may end without the successor being ended with us. False where it cannot be told, as launchd knows no
 * such thing: the first process has to stay then.
 */
export const nameMainProcess = async (pid: number, env = process.env): Promise<boolean> => {
  const manager = detectServiceManager(env)
  if (manager !== 'systemd') return manager === undefined
  return (await runTool('systemd-notify', [`MAINPID=${pid}`])).code === 0
}

/** What is left of a daemon in the foreground after a restart. */
export type StandIn = {
  /** Passes a stop on to the daemon that is in service. */
  readonly stop: () => Promise<void>
  /** Resolves when there is none any more, with true when it has ended as it should. */
  readonly ended: Promise<boolean>
}

const lookMs = 250

/**
 * Who started a daemon in the foreground (a terminal, systemd, launchd, a container) watches that very
 * process, and takes its end for the daemon's. So it stays, does nothing but pass signals on, and ends
 * with the daemon of the home, whichever that is by then.
 */
export const standIn = (home: Home): StandIn => {
  const current = async (): Promise<number | undefined> => {
    const file = await readDaemonFile(home).catch(() => undefined)
    // Somebody may have removed the file of one that runs.
    return file?.pid ?? (await readLockOwner(home, 'daemon'))
  }
  const waitForProcessExit = async (): Promise<boolean> => {
    for (;;) {
      const pid = await current()
      if (pid === undefined) return true
      if (!isAlive(pid)) return false
      await wait(lookMs)
    }
  }
  return {
    stop: async () => {
      const pid = await current()
      if (pid === undefined || pid === process.pid || !isAlive(pid)) return
      process.kill(pid, 'SIGTERM')
    },
    ended: waitForProcessExit(),
  }
}
