import { runTool } from '../../shared/service/platform.ts'

/**
 * The service manager that started this daemon, or undefined. It watches one process, and takes its
 * end for the daemon's.
 */
const managerOf = (env: NodeJS.ProcessEnv): 'systemd' | 'launchd' | undefined => {
  const name = env['DOORWARD_SERVICE']
  return name === 'systemd' || name === 'launchd' ? name : undefined
}

/**
 * Tells the manager to watch another process of ours from now on (sd_notify(3), `MAINPID=`), so that we
 * may end without the successor being ended with us. False where it cannot be told, as launchd knows no
 * such thing: the first process has to stay then.
 */
export const nameMainProcess = async (pid: number, env = process.env): Promise<boolean> => {
  const manager = managerOf(env)
  if (manager !== 'systemd') return manager === undefined
  return (await runTool('systemd-notify', [`MAINPID=${pid}`])).code === 0
}
