import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { Interface } from 'node:readline'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import type { Row } from '../menu.ts'
import { escapeLabel } from '../text.ts'
import { toTrayError } from './tray-error.ts'

/* oxlint-disable no-underscore-dangle -- names of systray2 */

/*
 * The one file that knows systray2, and all that has to be known about it: its binary comes without
 * the executable bit, `ready` never settles when the binary dies first or is ready too soon, the tree
 * is fixed at start, check marks and `kill` are broken, and a write to a dead binary is an uncaught EPIPE.
 */

/** What systray2 shows; the title of a separator is its mark. */
type Item = {
  title: string
  readonly tooltip: string
  readonly checked: false
  enabled: boolean
  hidden: boolean
  readonly items?: Item[]
  /** Given by systray2 when it starts; without it an update goes to the first row. */
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

/** What is to be seen: the rows, the icon file (absolute path) and the tooltip where there is one. */
export type TrayState = {
  readonly rows: readonly Row[]
  readonly icon: string
  readonly tooltip: string
}

/** One running tray program with its menu. */
export type Icon = {
  /** Shows this instead; the rows must have the shape they had at the start. */
  readonly show: (face: TrayState) => void
  /** Resolves when the program has ended, with how; it is ended when it has missed the panel. */
  readonly ended: Promise<string>
  /** Takes the icon away; always ends, within 1.5 s and a kill. */
  readonly stop: () => Promise<void>
}

/**
 * Starts the tray program that lies in `copyDir` and shows the face. Throws the errors of
 * `trayErrorOf`.
 */
export const startSystray = async (
  copyDir: string,
  face: TrayState,
  onClick: (row: Row) => void,
): Promise<Icon> => {
  const require = createRequire(import.meta.url)
  // A CommonJS module with `exports.default`: an ESM import would wrap it once more.
  const { default: SysTray } = require('systray2') as SystrayModule
  let rows = face.rows
  const items = face.rows.map(toItem)
  let { icon, tooltip } = face
  const systray = new SysTray({ menu: toMenu({ icon, tooltip }, items), copyDir })
  const { child, ended, missedPanel } = await settled(systray)

  // Its own listener would throw on a line that is not JSON.
  systray._rl.removeAllListeners('line')
  systray._rl.on('line', (line) => {
    const id = clickedId(line)
    const row = id === undefined ? undefined : findRow(rows, items, id)
    // Opening a submenu comes as a click too, and over D-Bus even a hidden row can be clicked.
    if (row?.action && !row.hidden) onClick(row)
  })

  const isAlive = () => child.exitCode === null && child.signalCode === null
  const stop = async (): Promise<void> => {
    if (!isAlive()) return
    ignoreFailure(systray.sendAction({ type: 'exit' }))
    const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await ended
    clearTimeout(timer)
  }
  // It would run for ever and show nothing; whoever keeps the icon starts it anew.
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

const toMenu = (face: { icon: string; tooltip: string }, items: Item[]): SystrayMenu => ({
  icon: face.icon,
  title: '',
  tooltip: face.tooltip,
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

/** Sends what differs. A parent is never sent: that would show its hidden rows. */
const update = (systray: Systray, items: readonly Item[], rows: readonly Row[]): void => {
  if (items.length !== rows.length)
    throw new DoorwardError('internal', 'the menu changed its shape while it was shown')
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
    const inner = item.items && row?.rows ? findRow(row.rows, item.items, id) : undefined
    if (inner) return inner
  }
  return undefined
}

const clickedId = (line: string): number | undefined => {
  try {
    const message = JSON.parse(line) as { type?: unknown; __id?: unknown } | null
    return message?.type === 'clicked' && typeof message.__id === 'number'
      ? message.__id
      : undefined
  } catch {
    return undefined
  }
}

/** A send fails only when the program has died, and that is heard of through `ended`. */
const ignoreFailure = (sent: Promise<unknown>): void => {
  sent.catch(() => undefined)
}

/** Waits until the program is ready, has ended, could not be started, or took too long. */
const settled = async (
  systray: Systray,
): Promise<{ child: ChildProcess; ended: Promise<string>; missedPanel: Promise<void> }> => {
  const failure: { error?: unknown } = {}
  const ready = systray.ready().catch((error: unknown) => {
    failure.error = error
  })
  // systray2 has no event for the moment it has spawned the program.
  await withoutGl(async () => {
    while (systray.process === null && failure.error === undefined) await nextTurn()
  })
  const child = systray.process
  if (!child) throw toTrayError('', systemCode(failure.error) ?? 'unknown reason')
  holdUntilHeard(child, systray._rl)
  let stderr = ''
  const missedPanel = new Promise<void>((resolve) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-4000)
      if (hasMissedPanel(stderr)) resolve()
    })
  })
  child.stdin?.on('error', () => undefined)
  const ended = awaitExit(child)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('it took too long'), readyTimeoutMs)
  })
  const ending = await Promise.race([ready, ended, late])
  clearTimeout(timer)
  if (failure.error === undefined && ending === undefined) return { child, ended, missedPanel }
  child.kill('SIGKILL')
  throw toTrayError(stderr, systemCode(failure.error) ?? ending ?? 'unknown reason')
}

/**
 * Keeps back what the program says until systray2 listens: it reads the icon file first, and a program
 * that says `ready` meanwhile would wait for its menu for ever.
 */
const holdUntilHeard = ({ stdout }: ChildProcess, lines: Interface): void => {
  if (lines.listenerCount('line') > 0) return
  stdout?.pause()
  lines.once('newListener', () => stdout?.resume())
}

/** After `close`, so that all it wrote has been read. Never rejects. */
const awaitExit = async (child: ChildProcess): Promise<string> => {
  if (child.pid === undefined) return new Promise<string>(() => undefined)
  if (child.exitCode === null && child.signalCode === null) {
    await once(child, 'close').catch(() => undefined)
  }
  return child.signalCode ?? `exit code ${child.exitCode}`
}

/**
 * Whether the tray program wrote to standard error that it lost its panel at the start, and so runs
 * on without an icon. libayatana-appindicator asks twice for the session bus, once to watch for the
 * panel and once to speak to it; when the panel is found before the second answer is taken, it fails
 * to register and never tries again (src/app-indicator.c, `name_appeared_handler`, 0.5.90 to 0.5.94).
 */
export const hasMissedPanel = (stderr: string): boolean =>
  /\bg_dbus_proxy_new: assertion \W?G_IS_DBUS_CONNECTION\b/.test(stderr)

/**
 * Runs `start`, and until it is done lets the programs that are started know that GTK is to leave
 * OpenGL alone: the first program of a display would else load the whole of Mesa to choose a visual,
 * 55 MB and 60 ms for a menu that draws none of it. Not for longer, because what is opened for the
 * user later may well draw with it. A value that the user has set stays.
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
