import { type Marker, markerLine } from './marker.ts'

export type DaemonUnit = {
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
Environment=${quoted(`PATH=${unit.searchPath}`)}
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
  if (!/["'\\\n\r\t]/.test(program)) return [quoted(program), ...words].join(' ')
  return ['/bin/sh', '-c', argument('exec "$0" "$@"'), argument(program), ...words].join(' ')
}

const argument = (text: string): string => quoted(text.replaceAll('$', '$$$$'))

const percent = (text: string): string => text.replaceAll('%', '%%')

/** One word (systemd.syntax(7), quoting), with specifiers of systemd.unit(5) taken literally. */
const quoted = (text: string): string =>
  `"${percent(text)
    .replaceAll(/[\\"]/g, String.raw`\$&`)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\r', String.raw`\r`)
    .replaceAll('\t', String.raw`\t`)}"`
