import { DoorwardError } from '../../shared/errors.ts'

/** The machine that a failure is explained for. */
export type Machine = { readonly platform: NodeJS.Platform; readonly arch: string }

const instead = 'doorward status and doorward events --follow show the same in a terminal'

/**
 * Says why the tray program ended or could not be started, from what it wrote to standard error:
 * `tray-library-missing` with the packages that bring it, `tray-no-display`, `tray-not-runnable`,
 * `tray-wrong-processor`, or `tray-failed`. `ending` is the code of a system error, or how it ended.
 */
export const toTrayError = (
  stderr: string,
  ending: string,
  { platform, arch }: Machine = process,
): DoorwardError => {
  const library = /error while loading shared libraries: (\S+?):/.exec(stderr)?.[1]
  if (library)
    return new DoorwardError('tray-library-missing', `the tray needs the library ${library}`, {
      hint: 'Debian, Ubuntu: sudo apt install libayatana-appindicator3-1; Fedora: sudo dnf install libappindicator-gtk3; Arch: sudo pacman -S libappindicator-gtk3',
    })
  const hasNoBus = /^no session bus/m.test(stderr)
  if (hasNoBus || /cannot open display|unable to open display/i.test(stderr))
    return new DoorwardError(
      'tray-no-display',
      `the tray finds no desktop to show its icon on${hasNoBus ? ': there is no session bus' : ''}`,
      {
        hint: 'start it inside a desktop session, or on a machine without one use: doorward status',
      },
    )
  if (isForeignProcessor(ending))
    return new DoorwardError(
      'tray-wrong-processor',
      `the tray program is made for x86-64 and does not run on ${arch}`,
      {
        hint:
          platform === 'darwin'
            ? `softwareupdate --install-rosetta lets it run on this Mac; without it ${instead}`
            : instead,
      },
    )
  if (ending === 'EACCES' || ending === 'EPERM')
    return new DoorwardError('tray-not-runnable', `the tray program may not be run (${ending})`, {
      hint: 'the home lies on a disk mounted noexec: name another with DOORWARD_HOME',
    })
  return new DoorwardError('tray-failed', `the tray program did not come up (${ending})`, {
    hint: 'start it again from a terminal of the desktop session; doorward status shows the same',
  })
}

/** ENOEXEC on Linux; on macOS EBADARCH, 86, which Node does not know by name. */
const isForeignProcessor = (ending: string): boolean =>
  ending === 'ENOEXEC' || ending === 'EBADARCH' || /system error -86\b/.test(ending)
