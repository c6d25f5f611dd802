import type { DaemonFile } from '../shared/api.ts'
import { plainLine } from '../shared/text.ts'
import { version } from '../shared/version.ts'
import type { Terminal } from './terminal.ts'

let wasPrinted = false

/** Says once per command that the daemon is of another version than this command, as after an upgrade. */
export const noticeVersion = (daemon: DaemonFile, terminal: Pick<Terminal, 'say'>): void => {
  if (wasPrinted || daemon.version === version) return
  wasPrinted = true
  terminal.say(
    `the running daemon is version ${plainLine(daemon.version)}, this command ${version}: doorward daemon restart`,
  )
}
