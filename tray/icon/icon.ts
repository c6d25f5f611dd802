import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DoorwardError } from '../../shared/errors.ts'
import { packageFolder } from '../../shared/version.ts'
import { findStatusAttention } from '../attention.ts'
import type { Row } from '../menu.ts'
import { startStatusNotifier } from '../sni/item.ts'
import type { View } from '../view.ts'
import { type TrayState, type Icon, startSystray } from './systray.ts'
import { stageProgram, type TrayProgram, trayProgramsFor } from './tray-binary.ts'

const backoffMs = [250, 1000, 4000, 15_000, 60_000]
const steadyMs = 60_000

/**
 * Starts the icon, and again with the last state whenever its program dies. Throws the errors of the
 * first start.
 */
export const keepIcon = async (
  folder: string,
  state: TrayState,
  onClick: (row: Row) => void,
): Promise<KeptIcon> => {
  const { env, platform, arch } = process
  const programs = trayProgramsFor(platform, arch, env)
  const { icon, program } = await startIcon(programs, folder, state, onClick)
  return new KeptIcon(icon, program, folder, state, onClick)
}

/** An icon whose program is started again when it dies. */
export class KeptIcon {
  /** The same for the whole life of the icon. */
  readonly program: TrayProgram
  /** Rejects when the icon cannot come back, as when the desktop session has ended. */
  readonly lost: Promise<never>
  readonly #folder: string
  readonly #onClick: (row: Row) => void
  readonly #stopping = new AbortController()
  #icon: Icon | undefined
  #state: TrayState
  /** The rows that the program was started with. */
  #rows: readonly Row[]

  constructor(
    icon: Icon,
    program: TrayProgram,
    folder: string,
    state: TrayState,
    onClick: (row: Row) => void,
  ) {
    this.program = program
    this.#icon = icon
    this.#folder = folder
    this.#state = state
    this.#rows = state.rows
    this.#onClick = onClick
    this.lost = this.#keep().then(() => new Promise<never>(() => undefined))
    this.lost.catch(() => undefined)
  }

  /** Restarts the program when the menu has other rows. */
  show(state: TrayState): void {
    this.#state = state
    this.#draw()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#icon?.stop()
  }

  #draw(): void {
    if (isSameShape(this.#state.rows, this.#rows)) this.#icon?.show(this.#state)
    else void this.#icon?.stop()
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping
    let deaths = 0
    while (!signal.aborted) {
      const startedAt = performance.now()
      await this.#icon?.ended
      this.#icon = undefined
      if (performance.now() - startedAt > steadyMs) deaths = 0
      const waitMs = backoffMs[Math.min(deaths, backoffMs.length - 1)]
      deaths += 1
      await delay(waitMs, undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      this.#icon = await this.#restart()
      if (signal.aborted) await this.#icon?.stop()
      // The state may have changed while the program started.
      this.#draw()
    }
  }

  /** Uses the same program: when it finds no desktop any more, the user has logged out. */
  async #restart(): Promise<Icon | undefined> {
    try {
      this.#rows = this.#state.rows
      return (await startIcon([this.program], this.#folder, this.#state, this.#onClick)).icon
    } catch (error) {
      if (error instanceof DoorwardError && error.code === 'tray-failed') return undefined
      throw error
    }
  }
}

const isSameShape = (some: readonly Row[] = [], others: readonly Row[] = []): boolean =>
  some.length === others.length &&
  some.every((row, index) => isSameShape(row.rows, others[index]?.rows))

/**
 * Shows the icon by the first program that starts. Throws the error of the first one, which is the
 * preferred.
 */
const startIcon = async (
  programs: readonly TrayProgram[],
  folder: string,
  state: TrayState,
  onClick: (row: Row) => void,
): Promise<{ readonly icon: Icon; readonly program: TrayProgram }> => {
  let failure: unknown
  for (const program of programs) {
    try {
      if (program === 'own') return { icon: await startStatusNotifier(state, onClick), program }
      await stageProgram(folder)
      return { icon: await startSystray(folder, state, onClick), program }
    } catch (error) {
      failure ??= error
    }
  }
  throw failure
}

const minRunningMs = 1000

/** Which icon to show, since when, and when to show the next. */
export type SteadyIcon = {
  readonly name: IconName
  readonly since: number
  readonly nextAt?: number
}

/** Shows `running` for at least a second before `idle`, so that the icon does not flicker. */
export const steadyIcon = (
  shown: SteadyIcon | undefined,
  name: IconName,
  now: number,
): SteadyIcon => {
  if (!shown) return { name, since: now }
  const { since } = shown
  if (shown.name === 'running' && name === 'idle' && now - since < minRunningMs)
    return { name: 'running', since, nextAt: since + minRunningMs }
  return { name, since: shown.name === name ? since : now }
}

export type IconName = 'idle' | 'running' | 'needs-you' | 'unreachable'

/** Attention wins over a run, since it lasts longer. */
export const getIconName = ({ daemon }: View): IconName => {
  if (daemon.state !== 'connected') return 'unreachable'
  if (findStatusAttention(daemon.status).some(({ urgent }) => urgent)) return 'needs-you'
  return daemon.status.queue.running > 0 ? 'running' : 'idle'
}

/**
 * The icon file for the system: an .ico on Windows, on macOS a template image that the system colours,
 * else a PNG of twice the usual size.
 */
export const iconFile = (name: IconName, platform: NodeJS.Platform = process.platform): string => {
  const files: Partial<Record<NodeJS.Platform, string>> = {
    win32: `${name}.ico`,
    darwin: `${name}Template@2x.png`,
  }
  return getIconPath(files[platform] ?? `${name}@2x.png`)
}

/** The picture for notifications, on every system. */
export const noteIconFile = (name: IconName): string => getIconPath(`${name}@2x.png`)

const getIconPath = (file: string): string =>
  fileURLToPath(new URL(`assets/icons/${file}`, packageFolder))
