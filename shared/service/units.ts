type DaemonUnit = {
  readonly marker: Marker
  /** Name of the unit that tells the person, without `.service`. */
  readonly failedName: string
  /** Program and arguments; the program is an absolute path. */
  readonly argv: readonly [string, ...string[]]
  readonly searchPath: string
  /** The file for standard error, emptied at each start. */
  readonly stderr: string
  readonly stopTimeoutS: number
  /** Root could write to the system; any other user cannot anyway. */
  readonly isRoot: boolean
  /** The version of systemd: 254 knows a growing delay between restarts. */
  readonly version: number
}

/**
 * The daemon as a user unit (systemd.service(5), systemd.exec(5)). What is left out on purpose stands in
 * it as a comment, for the person who reads it.
 */
export const daemonUnit = (unit: DaemonUnit): string => `# ${markerLine(unit.marker)}
# Your own settings: systemctl --user edit <name of this unit>
[Unit]
Description=Doorward, the local gateway
OnFailure=${unit.failedName}.service
StartLimitIntervalSec=300
StartLimitBurst=6

[Service]
Type=exec
ExecStart=${commandLine(unit.argv)}
Environment=${systemdQuoted(`PATH=${unit.searchPath}`)}
Environment=DOORWARD_SERVICE=systemd
${errorsTo(unit.stderr)}
Restart=on-failure
RestartSec=2
${unit.version >= 254 ? 'RestartSteps=4\nRestartMaxDelaySec=30\n' : ''}# 78: the configuration cannot be used until a person mends it.
RestartPreventExitStatus=78
# A stop finishes what was accepted; agents end with the daemon, or after it.
KillMode=mixed
TimeoutStopSec=${unit.stopTimeoutS}
# A daemon that hands over to its successor names it as the main process.
NotifyAccess=all
# An agent that takes all the memory ends alone.
OOMPolicy=continue
UMask=0077
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
${unit.isRoot ? 'ProtectSystem=full' : unprotected}

[Install]
WantedBy=default.target
`

/** Measured: with them, ssh ends with "Bad owner or permissions on /etc/ssh/ssh_config.d/…". */
const unprotected = `# Without ProtectSystem=, PrivateTmp= and the like: in a user unit they put the daemon into a user
# namespace, where ssh (and so git of an agent) refuses the system's configuration. The system's files
# are not yours to write, and NoNewPrivileges= keeps it so.`

/** Tells the person that the daemon could not be kept running; nothing else would. */
export const failedUnit = (marker: Marker): string => `# ${markerLine(marker)}
[Unit]
Description=Says that Doorward could not be kept running

[Service]
Type=oneshot
ExecStart=-/usr/bin/env notify-send --app-name=Doorward --urgency=critical -- "Doorward has stopped" "It could not be kept running. To see why: doorward daemon start"
TimeoutStartSec=10
`

/** A path with a line break cannot be written there; then the journal has it. */
const errorsTo = (path: string): string =>
  /[\n\r]/.test(path) ? 'StandardError=journal' : `StandardError=truncate:${percent(path)}`

/**
 * A variable is expanded in arguments, not in the program's own path (systemd.service(5)). systemd
 * refuses quotes, backslashes and line breaks in that path; a shell then takes its place.
 */
const commandLine = ([program, ...args]: readonly [string, ...string[]]): string => {
  const words = args.map(argument)
  if (!/["'\\\n\r\t]/.test(program)) return [systemdQuoted(program), ...words].join(' ')
  return ['/bin/sh', '-c', argument('exec "$0" "$@"'), argument(program), ...words].join(' ')
}

const argument = (text: string): string => systemdQuoted(text.replaceAll('$', '$$$$'))

const percent = (text: string): string => text.replaceAll('%', '%%')

/** One word (systemd.syntax(7), quoting), with specifiers of systemd.unit(5) taken literally. */
const systemdQuoted = (text: string): string =>
  `"${percent(text)
    .replaceAll(/[\\"]/g, String.raw`\$&`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\r', String.raw`\r`)
    .replaceAll('\t', String.raw`\t`)}"`

type LaunchAgent = {
  readonly marker: Marker
  readonly label: string
  readonly argv: readonly [string, ...string[]]
  readonly environment: Readonly<Record<string, string>>
  readonly stderr: string
  /** `failed`: after any end but a stop; `crashed`: only after the system ended it for a fault. */
  readonly startAgainWhen: 'failed' | 'crashed'
  /** What macOS may slow down: `Standard` nothing to speak of, `Interactive` nothing. */
  readonly processType: 'Standard' | 'Interactive'
  readonly stopTimeoutS: number
}

type Value = string | number | boolean | readonly string[] | { readonly [key: string]: Value }

/** A property list for `~/Library/LaunchAgents` (launchd.plist(5)). */
export const launchAgent = (agent: LaunchAgent): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${markerLine(agent.marker)} -->
<plist version="1.0">
${xml({
  Label: agent.label,
  ProgramArguments: agent.argv,
  EnvironmentVariables: agent.environment,
  RunAtLoad: true,
  // After a failed tray (no display, no Rosetta) another start would fail as well.
  KeepAlive: agent.startAgainWhen === 'failed' ? { SuccessfulExit: false } : { Crashed: true },
  ThrottleInterval: 10,
  ExitTimeOut: agent.stopTimeoutS,
  ProcessType: agent.processType,
  // 0077 in decimal: a property list knows no other numbers.
  Umask: 0o077,
  StandardErrorPath: agent.stderr,
})}
</plist>
`

const xml = (value: Value): string => {
  if (typeof value === 'string') return `<string>${escaped(value)}</string>`
  if (typeof value === 'number') return `<integer>${value}</integer>`
  if (typeof value === 'boolean') return `<${value}/>`
  if (isList(value)) return `<array>\n${value.map((one) => `${xml(one)}\n`).join('')}</array>`
  const rows = Object.entries(value).map(([key, one]) => `<key>${escaped(key)}</key>\n${xml(one)}`)
  return `<dict>\n${rows.join('\n')}\n</dict>`
}

const isList = (value: Value): value is readonly string[] => Array.isArray(value)

/** A reader turns a bare carriage return into a line feed (XML 1.0, 2.11). */
const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('\r', '&#13;')

type DesktopEntry = {
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
Exec=${value(argv.map(desktopQuoted).join(' '))}
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
const desktopQuoted = (text: string): string =>
  `"${text.replaceAll(/["`$\\]/g, String.raw`\$&`).replaceAll('%', '%%')}"`

/** A value of type string: its own escapes come on top of those of `Exec`. */
const value = (text: string): string =>
  text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\r', String.raw`\r`)
    .replaceAll('\t', String.raw`\t`)

/**
 * A script for the Startup folder of Windows that starts a program without a window. Windows Script Host
 * reads UTF-16 by its byte order mark, so that any name survives.
 */
export const startupScript = (marker: Marker, argv: readonly [string, ...string[]]): string => {
  const words = argv.map(commandWord)
  // Run expands %NAME%, once and without an escape: a word with a per cent sign goes by a variable.
  const byVariable = words.map((word, index) =>
    word.includes('%') ? getVariable(index) : undefined,
  )
  return [
    `\uFEFF' ${markerLine(marker)}`,
    'Set shell = CreateObject("WScript.Shell")',
    ...words.flatMap((word, index) => {
      const name = byVariable[index]
      return name ? [`shell.Environment("PROCESS")(${literal(name)}) = ${literal(word)}`] : []
    }),
    `shell.Run ${literal(words.map((word, index) => (byVariable[index] ? `%${byVariable[index]}%` : word)).join(' '))}, 0, False`,
    '',
  ].join('\r\n')
}

const getVariable = (index: number): string => `DOORWARD_WORD_${index}`

/** A word as CommandLineToArgvW reads it: a backslash counts only before a quote. */
const commandWord = (text: string): string =>
  `"${text.replaceAll(/(\\*)"/g, String.raw`$1$1\"`).replace(/\\+$/, '$&$&')}"`

const literal = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** What a file of ours is about; the last line of its header, in every format. */
export type Marker = {
  readonly node: string
  /** The program that Node runs. */
  readonly program: string
  readonly home: string
}

const words = 'Written by doorward daemon install, which overwrites changes: '

/**
 * One line by which we know a file of ours again, to be put into a comment. Holds no control character
 * and no `--`, which would end a comment of XML.
 */
export const markerLine = ({ node, program, home }: Marker): string =>
  words + JSON.stringify({ node, program, home }).replaceAll('--', String.raw`-\u002d`)

/** What a file says about itself, or undefined when it is not ours. */
export const readMarker = (text: string): Marker | undefined => {
  const start = text.indexOf(words)
  if (start === -1) return undefined
  const line = text.slice(start + words.length).split('\n', 1)[0] ?? ''
  try {
    const found = JSON.parse(line.replace(/\}[^}]*$/, '}')) as Partial<Record<string, unknown>>
    const { node, program, home } = found
    return typeof node === 'string' && typeof program === 'string' && typeof home === 'string'
      ? { node, program, home }
      : undefined
  } catch {
    return undefined
  }
}
