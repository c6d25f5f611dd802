import { type Marker, markerLine } from './marker.ts'

export type LaunchAgent = {
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
