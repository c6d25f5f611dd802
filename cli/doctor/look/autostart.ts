import type { Home } from '../../../shared/home/home.ts'
import { daemonAtLogin, loginItemProblems, trayAtLogin } from '../../../shared/service/service.ts'
import type { AutostartFacts } from '../judge/autostart.ts'

/** What starts at login, and what is wrong with it. */
export const lookAtAutostart = async (home: Home): Promise<AutostartFacts> => {
  const [daemon, tray, problems] = await Promise.all([
    daemonAtLogin(home).isOn(),
    trayAtLogin(home).isOn(),
    loginItemProblems(home),
  ])
  return { daemon, tray, problems }
}
