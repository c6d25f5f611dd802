import type { Warning } from '../../../../shared/config/warning.ts'
import type { Home } from '../../../../shared/home/home.ts'
import {
  daemonAutostart,
  checkLoginItems,
  trayAutostart,
} from '../../../../shared/service/service.ts'
import { type Check, checksFor } from '../check.ts'

/** Collects what starts at login, and what is wrong with it. */
export const collectAutostart = async (home: Home): Promise<AutostartFacts> => {
  const [daemon, tray, problems] = await Promise.all([
    daemonAutostart(home).isOn(),
    trayAutostart(home).isOn(),
    checkLoginItems(home),
  ])
  return { daemon, tray, problems }
}

const { ok, warning, error, skipped } = checksFor('autostart')

type AutostartFacts = {
  readonly daemon: boolean
  readonly tray: boolean
  readonly problems: readonly Warning[]
}

/** Checks whether the daemon starts at login, and whether the installed entry still works. */
export const checkAutostart = ({ daemon, tray, problems }: AutostartFacts): Check[] => {
  if (problems.length > 0)
    return problems.map(({ code, detail, hint }) =>
      (code === 'login-item-program-missing' ? error : warning)('at login', detail, hint),
    )
  if (!daemon)
    return [skipped('daemon', 'it does not start at login; doorward daemon install changes that')]
  return [ok('daemon', 'it starts at login'), ...(tray ? [ok('tray', 'it starts at login')] : [])]
}
