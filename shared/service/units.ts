/*
 * The texts of files that start a program at login: systemd units, a property list of launchd, a desktop
 * entry, and a script for Windows. Each has a marker in its header, by which doorward recognises its files.
 */

/** The program that one of our files starts: one line in its header, in every format. */
export type Marker = {
  readonly node: string
  /** The program that Node runs. */
  readonly program: string
  readonly home: string
}

const markerStart = 'Written by doorward daemon install, which overwrites changes: '

/** The line for a comment. Contains no control character, and no `--`, which XML comments must not. */
export const markerLine = ({ node, program, home }: Marker): string =>
  markerStart + JSON.stringify({ node, program, home }).replaceAll('--', String.raw`-\u002d`)

/** The marker of a file, or undefined when it is not ours. */
export const readMarker = (text: string): Marker | undefined => {
  const start = text.indexOf(markerStart)
  if (start === -1) return undefined
  const line = text.slice(start + markerStart.length).split('\n', 1)[0] ?? ''
  try {
    const { node, program, home } = JSON.parse(line.replace(/\}[^}]*$/, '}')) as Record<
      string,
      unknown
    >
    return typeof node === 'string' && typeof program === 'string' && typeof home === 'string'
      ? { node, program, home }
      : undefined
  } catch {
    return undefined
  }
}

/** A program with its arguments; the program is an absolute path. */
export type Launch = {
  readonly marker: Marker
  readonly argv: readonly [string, ...string[]]
  /** Variables of the network that it gets, without secrets. */
  readonly network: Readonly<Record<string, string>>
}

type DaemonUnit = Launch & {
  /** The unit that notifies the user, without `.service`. */
  readonly failedName: string
  readonly searchPath: string
  /** The file for standard error, emptied at each start. */
  readonly stderr: string
  readonly stopTimeoutS: number
  /** Only root can write to the system's files. */
  readonly isRoot: boolean
  /** The version of systemd: 254 supports growing delays between restarts. */
  readonly version: number
}

/**
 * The daemon as a user unit (systemd.service(5), systemd.exec(5)). Comments in it explain which options are
 * left out on purpose.
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
ExecStart=${execStart(unit.argv)}
Environment=${quoteForSystemd(`PATH=${unit.searchPath}`)}
Environment=DOORWARD_SERVICE=systemd
${Object.entries(unit.network)
  .map(([name, value]) => `Environment=${quoteForSystemd(`${name}=${value}`)}\n`)
  .join('')}StandardError=truncate:${escapePercent(unit.stderr)}
Restart=on-failure
RestartSec=2
${unit.version >= 254 ? 'RestartSteps=4\nRestartMaxDelaySec=30\n' : ''}# 78: the configuration is invalid until somebody fixes it.
RestartPreventExitStatus=78
# A stop finishes accepted events; agents exit with the daemon, or after it.
KillMode=mixed
TimeoutStopSec=${unit.stopTimeoutS}
# A daemon that restarts names its successor as the main process.
NotifyAccess=all
# An agent that uses all the memory is killed alone.
OOMPolicy=continue
UMask=0077
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
${unit.isRoot ? 'ProtectSystem=full' : unprotected}

[Install]
WantedBy=default.target
`

/** Measured: with these options ssh fails with "Bad owner or permissions on /etc/ssh/ssh_config.d/…". */
const unprotected = `# Without ProtectSystem=, PrivateTmp= and the like: in a user unit they put the daemon into a user
# namespace, where ssh (and so the git of an agent) refuses the system's configuration. You cannot write
# to the system's files, and NoNewPrivileges= ensures that.`

/** Notifies the user that systemd gave up restarting the daemon; nothing else would. */
export const failedUnit = (marker: Marker): string => `# ${markerLine(marker)}
[Unit]
Description=Reports that Doorward could not be kept running

[Service]
Type=oneshot
ExecStart=-/usr/bin/env notify-send --app-name=Doorward --urgency=critical -- "Doorward has stopped" "It could not be kept running. To see why: doorward daemon start"
TimeoutStartSec=10
`

/**
 * systemd expands variables in arguments, but not in the path of the program, where it refuses quotes and
 * backslashes (systemd.service(5)). A shell starts such a program.
 */
const execStart = ([program, ...args]: readonly [string, ...string[]]): string => {
  const words = args.map(quoteArgument)
  if (!/["'\\]/.test(program)) return [quoteForSystemd(program), ...words].join(' ')
  return ['/bin/sh', '-c', quoteArgument('exec "$0" "$@"'), quoteArgument(program), ...words].join(
    ' ',
  )
}

const quoteArgument = (text: string): string => quoteForSystemd(text.replaceAll('$', '$$$$'))

/** One word (systemd.syntax(7), quoting), without specifiers (systemd.unit(5)). */
const quoteForSystemd = (text: string): string =>
  `"${escapePercent(text).replaceAll(/[\\"]/g, String.raw`\$&`)}"`

const escapePercent = (text: string): string => text.replaceAll('%', '%%')

type LaunchAgent = Launch & {
  readonly label: string
  readonly environment: Readonly<Record<string, string>>
  readonly stderr: string
  /** `failed`: any exit code but 0; `crashed`: only a signal such as SIGSEGV. */
  readonly restartAfter: 'failed' | 'crashed'
  /** How much macOS may throttle it: `Standard` slightly, `Interactive` not at all. */
  readonly processType: 'Standard' | 'Interactive'
  readonly stopTimeoutS: number
}

type Value = string | number | boolean | readonly string[] | { readonly [key: string]: Value }

/** A property list for `~/Library/LaunchAgents` (launchd.plist(5)). */
export const launchAgent = (agent: LaunchAgent): string => `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ${markerLine(agent.marker)} -->
<plist version="1.0">
${toXml({
  Label: agent.label,
  ProgramArguments: agent.argv,
  EnvironmentVariables: { ...agent.environment, ...agent.network },
  RunAtLoad: true,
  // A tray that failed (no display, no Rosetta) would fail again.
  KeepAlive: agent.restartAfter === 'failed' ? { SuccessfulExit: false } : { Crashed: true },
  ThrottleInterval: 10,
  ExitTimeOut: agent.stopTimeoutS,
  ProcessType: agent.processType,
  // A property list has decimal numbers only.
  Umask: 0o077,
  StandardErrorPath: agent.stderr,
})}
</plist>
`

const toXml = (value: Value): string => {
  if (typeof value === 'string') return `<string>${escapeXml(value)}</string>`
  if (typeof value === 'number') return `<integer>${value}</integer>`
  if (typeof value === 'boolean') return `<${value}/>`
  if (isList(value)) return `<array>\n${value.map((one) => `${toXml(one)}\n`).join('')}</array>`
  const rows = Object.entries(value).map(
    ([key, one]) => `<key>${escapeXml(key)}</key>\n${toXml(one)}`,
  )
  return `<dict>\n${rows.join('\n')}\n</dict>`
}

const isList = (value: Value): value is readonly string[] => Array.isArray(value)

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

type DesktopEntry = Launch & {
  readonly name: string
  readonly comment: string
  readonly icon: string
}

/**
 * An autostart entry (Desktop Application Autostart Specification). The desktop ignores it when its
 * program (`TryExec`) is missing.
 */
export const desktopEntry = ({
  marker,
  name,
  comment,
  icon,
  argv,
  network,
}: DesktopEntry): string =>
  `# ${markerLine(marker)}
[Desktop Entry]
Type=Application
Name=${toDesktopString(name)}
Comment=${toDesktopString(comment)}
Icon=${toDesktopString(icon)}
TryExec=${toDesktopString(argv[0])}
Exec=${toDesktopString([...withVariables(network), ...argv].map(quoteForExec).join(' '))}
Terminal=false
StartupNotify=false
NoDisplay=true
X-GNOME-Autostart-enabled=true
`

/** An entry has no key for variables. */
const withVariables = (variables: Readonly<Record<string, string>>): string[] => {
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
  return words.length === 0 ? [] : ['/usr/bin/env', ...words]
}

/** False when the user switched the entry off in the desktop's settings. */
export const isEntryOn = (text: string): boolean =>
  !/^\s*(?:Hidden\s*=\s*true|X-GNOME-Autostart-enabled\s*=\s*false)\s*$/im.test(text)

/** An argument of `Exec` (Desktop Entry Specification, "The Exec key"). */
const quoteForExec = (text: string): string =>
  `"${text.replaceAll(/["`$\\]/g, String.raw`\$&`).replaceAll('%', '%%')}"`

/** A value of type string: escaped again after the quoting of `Exec`. */
const toDesktopString = (text: string): string => text.replaceAll('\\', String.raw`\\`)

/**
 * A script for the Startup folder of Windows that starts a program without a window. Its byte order mark
 * makes Windows Script Host read UTF-16, so that any name works.
 */
export const startupScript = ({ marker, argv, network }: Launch): string => {
  const variables = Object.entries(network).map(([name, value]) => setVariable(name, value))
  const words = argv.map(quoteForWindows).map((word, index) => {
    if (!word.includes('%')) return word
    // Run expands %NAME% and has no escape: a word with a per cent sign is passed in a variable.
    const name = `DOORWARD_WORD_${index}`
    variables.push(setVariable(name, word))
    return `%${name}%`
  })
  return [
    `\uFEFF' ${markerLine(marker)}`,
    'Set shell = CreateObject("WScript.Shell")',
    ...variables,
    `shell.Run ${toVbString(words.join(' '))}, 0, False`,
    '',
  ].join('\r\n')
}

const setVariable = (name: string, value: string): string =>
  `shell.Environment("PROCESS")(${toVbString(name)}) = ${toVbString(value)}`

/** A word for CommandLineToArgvW, which treats a backslash specially only before a quote. */
const quoteForWindows = (text: string): string =>
  `"${text.replaceAll(/(\\*)"/g, String.raw`$1$1\"`).replace(/\\+$/, '$&$&')}"`

const toVbString = (text: string): string => `"${text.replaceAll('"', '""')}"`
