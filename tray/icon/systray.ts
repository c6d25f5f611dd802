import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { Interface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import type { Row } from '../menu.ts'
import { escapeLabel } from '../text.ts'
import { withDeadline } from '../../shared/deadline.ts'

/* oxlint-disable no-underscore-dangle -- names of systray2 */

/*
 * The only file that knows systray2, and what has to be known about it: its binary comes without the
 * executable bit, `ready` never settles when the binary dies first or is ready too soon, the tree is
 * fixed at start, check marks and `kill` are broken, and a write to a dead binary is an uncaught EPIPE.
 */

/** A row as systray2 knows it; a separator is marked by its title. */
type Item = {
  title: string
  readonly tooltip: string
  readonly checked: false
  enabled: boolean
  hidden: boolean
  readonly items?: Item[]
  /** Set by systray2 at the start; an update without it changes the first row. */
  readonly __id?: number
}

type SystrayMenu = {
  icon: string
  readonly title: string
  readonly tooltip: string
  readonly isTemplateIcon: boolean
  readonly items: Item[]
}

type Systray = {
  readonly process: ChildProcess | null
  readonly _rl: Interface
  readonly ready: () => Promise<void>
  readonly sendAction: (
    action:
      | { type: 'update-item'; item: Item }
      | { type: 'update-menu'; menu: SystrayMenu }
      | { type: 'exit' },
  ) => Promise<unknown>
}

type SystrayModule = { default: new (conf: { menu: SystrayMenu; copyDir: string }) => Systray }

const readyTimeoutMs = 10_000
const stopTimeoutMs = 1500

/** What the tray shows: rows, icon file (absolute path), and tooltip. */
export type TrayState = {
  readonly rows: readonly Row[]
  readonly icon: string
  readonly tooltip: string
}

/** One running tray program with its menu. */
export type Icon = {
  /** The rows must have the shape that they had at the start. */
  readonly show: (state: TrayState) => void
  /** Resolves with how the program exited. A program that has missed the panel is stopped. */
  readonly ended: Promise<string>
  /** Removes the icon; kills the program after 1.5 s. */
  readonly stop: () => Promise<void>
}

/** Starts the tray program in `copyDir` and shows the state. Throws the errors of `toTrayError`. */
export const startSystray = async (
  copyDir: string,
  state: TrayState,
  onClick: (row: Row) => void,
): Promise<Icon> => {
  const require = createRequire(import.meta.url)
  // A CommonJS module with `exports.default`, which an ESM import would wrap again.
  const { default: SysTray } = require('systray2') as SystrayModule
  let { rows, icon, tooltip } = state
  const items = rows.map(toItem)
  const systray = new SysTray({ menu: toMenu({ icon, tooltip }, items), copyDir })
  const { child, ended, missedPanel } = await waitUntilReady(systray)

  // The listener of systray2 throws on a line that is not JSON.
  systray._rl.removeAllListeners('line')
  systray._rl.on('line', (line) => {
    const id = parseClickedId(line)
    const row = id === undefined ? undefined : findRow(rows, items, id)
    // Opening a submenu is a click too, and over D-Bus a program can click even a hidden row.
    if (row?.action && !row.hidden) onClick(row)
  })

  const isAlive = () => child.exitCode === null && child.signalCode === null
  const stop = async (): Promise<void> => {
    if (!isAlive()) return
    ignoreFailure(systray.sendAction({ type: 'exit' }))
    await withDeadline(stopTimeoutMs, ended, async () => {
      child.kill('SIGKILL')
      await ended
    })
  }
  // Otherwise it runs on without an icon; `keepIcon` starts it again.
  void missedPanel.then(stop)
  return {
    show: (next) => {
      if (!isAlive()) return
      update(systray, items, next.rows)
      rows = next.rows
      if (next.icon === icon && next.tooltip === tooltip) return
      ;({ icon, tooltip } = next)
      ignoreFailure(systray.sendAction({ type: 'update-menu', menu: toMenu(next, []) }))
    },
    ended,
    stop,
  }
}

const toMenu = ({ icon, tooltip }: Omit<TrayState, 'rows'>, items: Item[]): SystrayMenu => ({
  icon,
  title: '',
  tooltip,
  isTemplateIcon: process.platform === 'darwin',
  items,
})

const toItem = (row: Row): Item => ({
  title: row.separator ? '<SEPARATOR>' : escapeLabel(row.text, process.platform),
  tooltip: '',
  checked: false,
  enabled: row.separator === true || row.action !== undefined || row.rows !== undefined,
  hidden: row.hidden ?? false,
  ...(row.rows ? { items: row.rows.map(toItem) } : {}),
})

/** Sends the rows that differ. Never sends a parent, which would show its hidden rows. */
const update = (systray: Systray, items: readonly Item[], rows: readonly Row[]): void => {
  if (items.length !== rows.length)
    throw new DoorwardError('internal', 'the menu has changed its shape')
  items.forEach((item, index) => {
    const row = rows[index]
    if (!row || row.separator) return
    if (item.items) return update(systray, item.items, row.rows ?? [])
    const { title, enabled, hidden } = toItem(row)
    if (item.title === title && item.enabled === enabled && item.hidden === hidden) return
    Object.assign(item, { title, enabled, hidden })
    ignoreFailure(systray.sendAction({ type: 'update-item', item: { ...item } }))
  })
}

const findRow = (rows: readonly Row[], items: readonly Item[], id: number): Row | undefined => {
  for (const [index, item] of items.entries()) {
    const row = rows[index]
    if (item.__id === id) return row
    const child = item.items && row?.rows ? findRow(row.rows, item.items, id) : undefined
    if (child) return child
  }
  return undefined
}

const parseClickedId = (line: string): number | undefined => {
  try {
    const message = JSON.parse(line) as { type?: unknown; __id?: unknown } | null
    return message?.type === 'clicked' && typeof message.__id === 'number'
      ? message.__id
      : undefined
  } catch {
    return undefined
  }
}

/** A send fails only when the program has died, which `ended` reports. */
const ignoreFailure = (sent: Promise<unknown>): void => {
  sent.catch(() => undefined)
}

/** Throws when the program cannot be started, exits, or takes too long to be ready. */
const waitUntilReady = async (
  systray: Systray,
): Promise<{ child: ChildProcess; ended: Promise<string>; missedPanel: Promise<void> }> => {
  const failure: { error?: unknown } = {}
  const ready = systray.ready().catch((error: unknown) => {
    failure.error = error
  })
  // systray2 emits no event when it has spawned the program.
  await withoutGl(async () => {
    while (systray.process === null && failure.error === undefined) await nextTurn()
  })
  const child = systray.process
  if (!child) throw toTrayError('', systemCode(failure.error) ?? 'unknown reason')
  pauseUntilListening(child, systray._rl)
  let stderr = ''
  const missedPanel = new Promise<void>((resolve) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-4000)
      if (hasMissedPanel(stderr)) resolve()
    })
  })
  child.stdin?.on('error', () => undefined)
  const ended = awaitExit(child)
  const over = Promise.race([ready, ended])
  const ending = await withDeadline(readyTimeoutMs, over, () => 'it took too long')
  if (failure.error === undefined && ending === undefined) return { child, ended, missedPanel }
  child.kill('SIGKILL')
  throw toTrayError(stderr, systemCode(failure.error) ?? ending ?? 'unknown reason')
}

/**
 * Pauses the output of the program until systray2 listens. systray2 reads the icon file first, and would
 * miss a `ready` that comes before: the program would wait for its menu for ever.
 */
const pauseUntilListening = ({ stdout }: ChildProcess, lines: Interface): void => {
  if (lines.listenerCount('line') > 0) return
  stdout?.pause()
  lines.once('newListener', () => stdout?.resume())
}

/** Waits for `close`, so that all output has been read. Never rejects. */
const awaitExit = async (child: ChildProcess): Promise<string> => {
  if (child.pid === undefined) return new Promise<string>(() => undefined)
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, 'close').catch(() => undefined)
  }
  return child.signalCode ?? `exit code ${child.exitCode}`
}

/**
 * Whether the tray program wrote to standard error that it missed the panel at the start, and so runs
 * without an icon. libayatana-appindicator connects to the session bus twice, to watch for the panel and
 * to call it. When it finds the panel before the second connection is ready, it fails to register and
 * never tries again (src/app-indicator.c, `name_appeared_handler`, 0.5.90 to 0.5.94).
 */
export const hasMissedPanel = (stderr: string): boolean =>
  /\bg_dbus_proxy_new: assertion \W?G_IS_DBUS_CONNECTION\b/.test(stderr)

/**
 * Runs `start` with an environment that keeps GTK from using OpenGL. Otherwise the first program of a
 * display loads all of Mesa to choose a visual, 55 MB and 60 ms for a menu that draws nothing with it.
 * The variable is removed afterwards, since other programs may need OpenGL; a value of the user stays.
 */
const withoutGl = async (start: () => Promise<void>): Promise<void> => {
  if (process.platform !== 'linux' || process.env['GDK_GL'] !== undefined) return start()
  process.env['GDK_GL'] = 'disable'
  try {
    await start()
  } finally {
    delete process.env['GDK_GL']
  }
}

const inTerminal = 'doorward status and doorward events --follow show the same in a terminal'

/**
 * The error for a tray program that exited or did not start, from its standard error output:
 * `tray-library-missing`, `tray-no-display`, `tray-not-runnable`, `tray-wrong-processor` or
 * `tray-failed`. `ending` is the code of a system error, or how the program exited.
 */
export const toTrayError = (
  stderr: string,
  ending: string,
  { platform, arch }: { readonly platform: NodeJS.Platform; readonly arch: string } = process,
): DoorwardError => {
  const library = /error while loading shared libraries: (\S+?):/.exec(stderr)?.[1]
  if (library)
    return new DoorwardError('tray-library-missing', `the tray needs the library ${library}`, {
      hint: 'Debian, Ubuntu: sudo apt install libayatana-appindicator3-1; Fedora: sudo dnf install libappindicator-gtk3; Arch: sudo pacman -S libappindicator-gtk3',
    })
  if (/cannot open display|unable to open display/i.test(stderr)) return noDesktopError()
  if (isForeignProcessor(ending) || /\bexec format error\b/i.test(stderr))
    return new DoorwardError(
      'tray-wrong-processor',
      `the tray program is built for x86-64 and does not run on ${arch}`,
      {
        hint:
          platform === 'darwin'
            ? `softwareupdate --install-rosetta lets it run on this Mac; without it ${inTerminal}`
            : inTerminal,
      },
    )
  if (ending === 'EACCES' || ending === 'EPERM')
    return new DoorwardError('tray-not-runnable', `the tray program may not be run (${ending})`, {
      hint: 'the home is on a disk mounted noexec: set DOORWARD_HOME to another folder',
    })
  return new DoorwardError('tray-failed', `the tray program did not start (${ending})`, {
    hint: 'start it again from a terminal of the desktop session; until then: doorward status',
  })
}

export const noDesktopError = (why?: string): DoorwardError =>
  new DoorwardError(
    'tray-no-display',
    `the tray found no desktop for its icon${why === undefined ? '' : `: ${why}`}`,
    { hint: 'start it in a desktop session; on a machine without one use: doorward status' },
  )

/** ENOEXEC on Linux; on macOS EBADARCH, 86, for which Node has no name. */
const isForeignProcessor = (ending: string): boolean =>
  ending === 'ENOEXEC' || ending === 'EBADARCH' || /system error -86\b/.test(ending)
