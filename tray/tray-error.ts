import { DoorwardError } from '../shared/errors.ts'

/**
 * Says why the tray program ended or could not be started, from what it wrote to standard error:
 * `tray-library-missing` with the packages that bring it, `tray-no-display`, or `tray-failed`.
 */
export const trayErrorOf = (stderr: string, ending: string): DoorwardError => {
  const library = /error while loading shared libraries: (\S+?):/.exec(stderr)?.[1]
  if (library)
    return new DoorwardError('tray-library-missing', `the tray needs the library ${library}`, {
      hint: 'Debian, Ubuntu: sudo apt install libayatana-appindicator3-1; Fedora: sudo dnf install libappindicator-gtk3; Arch: sudo pacman -S libappindicator-gtk3',
    })
  if (/cannot open display|unable to open display/i.test(stderr))
    return new DoorwardError('tray-no-display', 'the tray finds no desktop to show its icon on', {
      hint: 'start it inside a desktop session, or on a machine without one use: doorward status',
    })
  if (ending === 'ENOEXEC' || ending === 'EBADARCH')
    return new DoorwardError(
      'tray-failed',
      `the tray program is made for x86-64 and does not run on ${process.arch}`,
      { hint: 'doorward status and doorward events show the same' },
    )
  if (ending === 'EACCES')
    return new DoorwardError('tray-failed', 'the tray program may not be run (EACCES)', {
      hint: 'the home may lie on a disk mounted noexec: name another with DOORWARD_HOME',
    })
  return new DoorwardError('tray-failed', `the tray program did not come up (${ending})`, {
    hint: 'start it again from a terminal of the desktop session; doorward status shows the same',
  })
}
