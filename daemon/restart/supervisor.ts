import { setTimeout as wait } from 'node:timers/promises'
import { readDaemonFile } from '../../shared/client/discovery.ts'
import type { Home } from '../../shared/home/home.ts'
import { readLockOwner, isAlive } from '../../shared/home/lock.ts'
import { runTool } from '../../shared/service/platform.ts'

/*
 * What started a daemon in the foreground (a terminal, systemd, launchd, a container) watches that one
 * process, and takes its exit for the exit of the daemon. A restart must not look like that.
 */

/** The service manager that started this daemon, if any. */
const detectServiceManager = (env: NodeJS.ProcessEnv): 'systemd' | 'launchd' | undefined => {
  const name = env['DOORWARD_SERVICE']
  return name === 'systemd' || name === 'launchd' ? name : undefined
}

/**
 * Has systemd watch another process of ours from now on (sd_notify(3), `MAINPID=`), so that this one may
 * exit. True when nothing needs this process; launchd has no such message, so there it has to stay.
 */
export const nameMainProcess = async (pid: number, env = process.env): Promise<boolean> => {
  const manager = detectServiceManager(env)
  if (manager !== 'systemd') return manager === undefined
  return (await runTool('systemd-notify', [`MAINPID=${pid}`])).code === 0
}

/** What remains of a daemon in the foreground after a restart. */
export type StandIn = {
  /** Passes a stop on to the daemon of the home. */
  readonly stop: () => Promise<void>
  /** Resolves when no daemon runs any more; true when the last one exited as it should. */
  readonly ended: Promise<boolean>
}

const pollMs = 250

/** Stays as long as the home has a daemon, whichever process that is, and passes signals on. */
export const standIn = (home: Home): StandIn => {
  const findDaemon = async (): Promise<number | undefined> => {
    const file = await readDaemonFile(home).catch(() => undefined)
    // The file of a running daemon may have been deleted.
    return file?.pid ?? (await readLockOwner(home, 'daemon'))
  }
  const awaitEnd = async (): Promise<boolean> => {
    for (;;) {
      const pid = await findDaemon()
      if (pid === undefined) return true
      if (!isAlive(pid)) return false
      await wait(pollMs)
    }
  }
  return {
    stop: async () => {
      const pid = await findDaemon()
      if (pid === undefined || pid === process.pid || !isAlive(pid)) return
      process.kill(pid, 'SIGTERM')
    },
    ended: awaitEnd(),
  }
}
