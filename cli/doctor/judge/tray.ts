import type { Config } from '../../../shared/config/load.ts'
import { type Check, checksOf } from '../check.ts'
import type { DesktopFacts } from '../look/desktop.ts'

const { ok, warning, error, skipped } = checksOf('tray')

/** As much of a configuration as says who waits for the tray. */
type Delivering = {
  readonly webhooks: readonly (Pick<Config['webhooks'][number], 'path' | 'enabled'> & {
    readonly targets: readonly { readonly kind: string }[]
  })[]
}

/**
 * Whether the tray's program is whole, whether this session can show its icon and its notes, and whether it
 * runs where an enabled webhook delivers to it.
 */
export const judgeTray = (facts: DesktopFacts, config?: Delivering): Check[] => {
  const { pid } = facts
  return [
    programOf(facts),
    pid === undefined ? absent(config) : ok('running', `pid ${pid}`),
    ...(facts.platform === 'linux' ? sessionOf(facts) : []),
  ]
}

const absent = (config: Delivering | undefined): Check => {
  const waiting = (config?.webhooks ?? []).filter(
    ({ enabled, targets }) => enabled && targets.some(({ kind }) => kind === 'notify'),
  )
  const [first, ...more] = waiting
  if (!first) return skipped('running', 'it does not run; start it with: doorward tray')
  const deliver = more.length === 0 ? 'delivers' : `and ${more.length} more deliver`
  return warning(
    'running',
    `it does not run, so nobody is shown what ${first.path} ${deliver} to notify:desktop`,
    'doorward tray',
  )
}

const programOf = ({ program, platform, arch }: DesktopFacts): Check => {
  switch (program) {
    case 'good':
      return ok('program', 'it is the one this version was made with')
    case 'changed':
      return error(
        'program',
        'it is not, byte for byte, the one this version was made with: it is not run',
        'install doorward again',
      )
    case 'missing':
      return error('program', 'it is not there', 'install doorward again, with its dependencies')
    case 'none':
      return skipped('program', `there is none for ${platform} ${arch}`)
  }
}

const sessionOf = (facts: DesktopFacts): Check[] => {
  const { hasDisplay, hasBus, hasHost, hasNotifications, hasLibrary } = facts
  // A server has a session bus too, once somebody logs in over ssh; it wants no panel.
  if (!hasDisplay && !hasHost)
    return [skipped('session', 'this is no desktop session: there is nothing to show an icon on')]
  return [
    hasLibrary
      ? ok('library', 'libappindicator3 is there')
      : // Our own program needs no library, but a panel of the usual kind.
        hasHost
        ? ok('library', 'libappindicator3 is missing: our own program shows the icon')
        : warning(
            'library',
            'libappindicator3.so.1 is missing, which the packaged program needs',
            'Debian, Ubuntu: sudo apt install libayatana-appindicator3-1; Fedora: sudo dnf install libappindicator-gtk3; Arch: sudo pacman -S libappindicator-gtk3',
          ),
    hostOf(facts),
    notificationsOf(hasBus, hasNotifications),
  ]
}

const noBus = 'there is no session bus to ask'
const noAsker = 'no program here can ask the session bus (gdbus, dbus-send or busctl)'

const hostOf = ({ hasBus, hasHost, hasDisplay }: DesktopFacts): Check => {
  if (!hasBus || hasHost === undefined) return skipped('host', hasBus ? noAsker : noBus)
  return hasHost
    ? ok('host', 'a panel shows tray icons')
    : warning(
        'host',
        `no panel of this session shows tray icons of the usual kind${hasDisplay ? '; whether one of the older kind is there was not checked' : ''}`,
        'GNOME: install the extension AppIndicator and KStatusNotifierItem Support; Sway, i3: a bar with a tray',
      )
}

const notificationsOf = (hasBus: boolean, has: boolean | undefined): Check => {
  if (!hasBus || has === undefined) return skipped('notifications', hasBus ? noAsker : noBus)
  return has
    ? ok('notifications', 'a service shows them')
    : warning(
        'notifications',
        'no service of this session shows notifications',
        'install one, for example: sudo apt install dunst',
      )
}
