import { type Marker, markerLine } from './marker.ts'

export type DesktopEntry = {
  readonly marker: Marker
  readonly name: string
  readonly comment: string
  readonly icon: string
  readonly argv: readonly [string, ...string[]]
}

/**
 * An autostart entry of a desktop (Desktop Application Autostart Specification). Without its program
 * (`TryExec`) the desktop passes it over.
 */
export const desktopEntry = ({ marker, name, comment, icon, argv }: DesktopEntry): string =>
  `# ${markerLine(marker)}
[Desktop Entry]
Type=Application
Name=${value(name)}
Comment=${value(comment)}
Icon=${value(icon)}
TryExec=${value(argv[0])}
Exec=${value(argv.map(quoted).join(' '))}
Terminal=false
StartupNotify=false
NoDisplay=true
X-GNOME-Autostart-enabled=true
`

/** False when the desktop's settings have switched the entry off. */
export const isEntryOn = (text: string): boolean =>
  !/^\s*(?:Hidden\s*=\s*true|X-GNOME-Autostart-enabled\s*=\s*false)\s*$/im.test(text)

/** The entry without what the desktop's settings write into it. */
export const withoutSwitch = (text: string): string =>
  text.replaceAll(/^\s*(?:Hidden|X-GNOME-Autostart-enabled)\s*=.*\n/gim, '')

/** An argument of `Exec` (Desktop Entry Specification, "The Exec key"). */
const quoted = (text: string): string =>
  `"${text.replaceAll(/["`$\\]/g, String.raw`\$&`).replaceAll('%', '%%')}"`

/** A value of type string: its own escapes come on top of those of `Exec`. */
const value = (text: string): string =>
  text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\r', String.raw`\r`)
    .replaceAll('\t', String.raw`\t`)
